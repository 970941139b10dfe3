#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <string_view>
#include <tuple>

#include "text/code_points.h"
#include "text/token_models.h"

namespace heed { inline namespace v0 { namespace text {

namespace {

std::uint64_t pair_of(std::int64_t first, std::int64_t second) {
  return static_cast<std::uint64_t>(first) << 32 | static_cast<std::uint64_t>(second);
}

}  // namespace

// The tokens of one piece during merging: a linked list of tokens, and a queue of possible merges,
// best first.
class BytePairs::Merging {
 public:
  Merging(const BytePairs& model, std::vector<PieceToken>& tokens)
      : model_(model), tokens_(tokens), links_(tokens.size()) {
    for (std::size_t i = 0; i < links_.size(); ++i) {
      links_[i] = {i == 0 ? kNone : i - 1, i + 1 == links_.size() ? kNone : i + 1};
    }
    std::vector<Candidate> candidates;
    for (std::size_t i = 0; i + 1 < links_.size(); ++i) {
      if (const Rank* rank = model_.find(tokens_[i].id, tokens_[i + 1].id)) {
        candidates.push_back({rank->rank, i, rank->made});
      }
    }
    queue_ = Queue(std::greater<>(), std::move(candidates));
  }

  void run() {
    while (!queue_.empty()) {
      const Candidate best = queue_.top();
      queue_.pop();
      if (is_possible(best)) merge(best);
    }
    std::erase_if(tokens_, [](const PieceToken& token) { return token.id == kGone; });
  }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  static constexpr std::int64_t kGone = -1;

  struct Link {
    std::size_t before;
    std::size_t after;
  };
  struct Candidate {
    std::uint32_t rank;
    std::size_t at;  // of the first of the two tokens; at equal rank the leftmost is best
    std::uint32_t made;
    bool operator>(const Candidate& other) const {
      return std::tie(rank, at) > std::tie(other.rank, other.at);
    }
  };
  using Queue = std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>>;

  // True if the two tokens are still there.
  bool is_possible(const Candidate& candidate) {
    const std::size_t after = links_[candidate.at].after;
    if (tokens_[candidate.at].id == kGone || after == kNone) return false;
    const Rank* rank = model_.find(tokens_[candidate.at].id, tokens_[after].id);
    return rank != nullptr && rank->made == candidate.made;
  }

  void merge(const Candidate& candidate) {
    const std::size_t at = candidate.at;
    const std::size_t taken = links_[at].after;
    tokens_[at].id = candidate.made;
    tokens_[at].end = tokens_[taken].end;
    tokens_[taken].id = kGone;
    links_[at].after = links_[taken].after;
    if (links_[at].after != kNone) {
      links_[links_[at].after].before = at;
      push(at, links_[at].after);
    }
    if (links_[at].before != kNone) push(links_[at].before, at);
  }

  void push(std::size_t first, std::size_t second) {
    if (const Rank* rank = model_.find(tokens_[first].id, tokens_[second].id)) {
      queue_.push({rank->rank, first, rank->made});
    }
  }

  const BytePairs& model_;
  std::vector<PieceToken>& tokens_;
  std::vector<Link> links_;
  Queue queue_;
};

BytePairs::BytePairs(const TokenTable& tokens, const std::vector<Merge>& merges,
                     const BytePairOptions& options)
    : tokens_(tokens), options_(options) {
  ranks_.reserve(merges.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    // If a merge is listed twice the last one counts, as in the library that writes them.
    const std::int64_t rank =
        merges[i].rank == kByPlace ? static_cast<std::int64_t>(i) : merges[i].rank;
    ranks_[pair_of(merges[i].first, merges[i].second)] = {
        static_cast<std::uint32_t>(rank), static_cast<std::uint32_t>(merges[i].made)};
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = tokens.find_in_model(fmt::format("<0x{:02X}>", byte)).value_or(-1);
  }
}

const BytePairs::Rank* BytePairs::find(std::int64_t first, std::int64_t second) const {
  const auto found = ranks_.find(pair_of(first, second));
  return found == ranks_.end() ? nullptr : &found->second;
}

std::optional<std::int64_t> BytePairs::token_of(std::string_view piece, std::size_t begin,
                                                std::size_t end) const {
  const std::string_view character = piece.substr(begin, end - begin);
  if (options_.prefix.empty() && options_.suffix.empty()) return tokens_.find_in_model(character);
  std::string token = begin == 0 ? "" : options_.prefix;
  token += character;
  if (end == piece.size()) token += options_.suffix;
  return tokens_.find_in_model(token);
}

void BytePairs::append_unknown(Span part, std::vector<PieceToken>& tokens) const {
  if (!options_.unknown) return;
  const bool fuses = options_.fuses_unknown && !tokens.empty() &&
                     tokens.back().id == *options_.unknown && tokens.back().end == part.begin;
  if (fuses) {
    tokens.back().end = part.end;
  } else {
    tokens.push_back({*options_.unknown, part.begin, part.end});
  }
}

void BytePairs::append_characters(std::string_view piece, std::vector<PieceToken>& tokens) const {
  for (std::size_t at = 0; at < piece.size();) {
    const std::size_t end = at + character_at(piece, at).size;
    const auto byte_token = [&](char byte) { return bytes_[static_cast<unsigned char>(byte)]; };
    const std::string_view bytes = piece.substr(at, end - at);
    if (const auto id = token_of(piece, at, end)) {
      tokens.push_back({*id, at, end});
    } else if (options_.falls_back && std::all_of(bytes.begin(), bytes.end(), [&](char byte) {
                 return byte_token(byte) >= 0;
               })) {
      for (std::size_t i = at; i < end; ++i) tokens.push_back({byte_token(piece[i]), i, i + 1});
    } else {
      append_unknown({at, end}, tokens);
    }
    at = end;
  }
}

void BytePairs::tokenize(std::string_view piece, std::vector<PieceToken>& tokens) const {
  if (options_.ignores_merges) {
    if (const auto id = tokens_.find_in_model(piece)) {
      tokens.push_back({*id, 0, piece.size()});
      return;
    }
  }
  append_characters(piece, tokens);
  if (tokens.size() > 1) Merging(*this, tokens).run();
}

namespace {

// True for a byte of UTF-8 that does not begin a character.
bool is_inside_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

}  // namespace

std::vector<BytePairs::Merge> merges_of_scores(const TokenTable& tokens,
                                               const std::vector<double>& scores,
                                               const std::vector<bool>& is_made) {
  std::vector<double> falling = scores;
  std::sort(falling.begin(), falling.end(), std::greater<>());
  falling.erase(std::unique(falling.begin(), falling.end()), falling.end());
  std::vector<BytePairs::Merge> merges;
  for (std::int64_t id = 0; id < tokens.size(); ++id) {
    const auto index = static_cast<std::size_t>(id);
    if (!is_made[index]) continue;
    const auto rank =
        std::lower_bound(falling.begin(), falling.end(), scores[index], std::greater<>()) -
        falling.begin();
    const std::string_view token = tokens.token(id);
    for (std::size_t at = 1; at < token.size(); ++at) {
      if (is_inside_character(token[at])) continue;
      const auto first = tokens.find_in_model(token.substr(0, at));
      const auto second = tokens.find_in_model(token.substr(at));
      if (first && second) merges.push_back({*first, *second, id, rank});
    }
  }
  return merges;
}

}}}  // namespace heed::v0::text
