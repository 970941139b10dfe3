// Texts in a tree by their bytes, to find those that a text begins with.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace heed { inline namespace v0 { namespace text {

// Each text has a number. Several trees may share the memory: their roots are the nodes 0, 1, ….
class ByteTrie {
 public:
  using Node = std::uint32_t;
  static constexpr std::int64_t kNone = -1;

  explicit ByteTrie(std::size_t num_roots = 1) : values_(num_roots, kNone) {}

  // The value of a text, which the caller may set; an empty text has that of its root.
  std::int64_t& value(Node root, std::string_view text) {
    Node node = root;
    for (const char byte : text) {
      const auto [child, is_new] =
          children_.emplace(edge(node, byte), static_cast<Node>(values_.size()));
      if (is_new) values_.push_back(kNone);
      node = child->second;
    }
    return values_[node];
  }

  // Calls `each(value, end)` for all texts that have a value and are in text[begin, end), from the
  // shortest.
  template <class Each>
  void find(Node root, std::string_view text, std::size_t begin, const Each& each) const {
    Node node = root;
    for (std::size_t at = begin; at < text.size(); ++at) {
      const auto child = children_.find(edge(node, text[at]));
      if (child == children_.end()) return;
      node = child->second;
      if (values_[node] != kNone) each(values_[node], at + 1);
    }
  }

 private:
  static std::uint64_t edge(Node node, char byte) {
    return std::uint64_t{node} << 8 | static_cast<unsigned char>(byte);
  }

  std::unordered_map<std::uint64_t, Node> children_;
  std::vector<std::int64_t> values_;
};

}}}  // namespace heed::v0::text
