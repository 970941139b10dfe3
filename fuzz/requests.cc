// Requests to `heed serve` of arbitrary bytes that arrive in two pieces: the answer has a bounded
// size and is the same as for one piece.
#include "serve/requests.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http.h"

namespace {

namespace cli = heed::cli;

// The answer to `first`, then `second`; nothing while the request is incomplete.
std::optional<cli::HttpAnswer> answer(std::string_view first, std::string_view second) {
  static const auto page = std::make_shared<const std::string>("the page");
  cli::RequestReader reader;
  const bool is_done = reader.take(first) || reader.take(second);
  if (!is_done) return {};
  if (reader.refusal()) return reader.refusal();
  const cli::HttpRequest& request = reader.request();
  if (request.body.size() > cli::RequestReader::kMaxBodyBytes) std::abort();
  // Longer sentences take much time and test nothing more of the parser.
  if (request.body.size() > 300) return {};
  return cli::answer_request(request, 8000, page);
}

std::string text_of(const std::optional<cli::HttpAnswer>& answered) {
  return answered ? cli::head_of(*answered) + *answered->body : "none";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t at = size == 0 ? 0 : data[size - 1] % size;
  const std::string whole = text_of(answer(bytes, ""));
  if (text_of(answer(bytes.substr(0, at), bytes.substr(at))) != whole) std::abort();
  return 0;
}
