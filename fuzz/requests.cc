// What `heed serve` is sent, arbitrary bytes that come in two pieces: an answer of bounded size,
// whatever they are, and the same one as when they come in one.
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

// What a server that others on its network may ask answers to `first`, then `second`, or one that
// is asked from its own machine alone; nothing while the request is not whole.
std::optional<cli::HttpAnswer> answer(const char* host, std::string_view first,
                                      std::string_view second) {
  static const auto page = std::make_shared<const std::string>("the page");
  cli::RequestReader reader;
  const bool is_done = reader.take(first) || reader.take(second);
  if (!is_done) return {};
  if (reader.refusal()) return reader.refusal();
  const cli::HttpRequest& request = reader.request();
  if (request.body.size() > cli::RequestReader::kMaxBodyBytes) std::abort();
  // Longer sentences cost the operator's time and tell nothing of the reader.
  if (request.body.size() > 300) return {};
  return cli::answer_request(request, {host, 8000}, page);
}

std::string text_of(const std::optional<cli::HttpAnswer>& answered) {
  return answered ? cli::head_of(*answered) + *answered->body : "none";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t at = size == 0 ? 0 : data[size - 1] % size;
  for (const char* host : {"127.0.0.1", "0.0.0.0"}) {
    const std::string whole = text_of(answer(host, bytes, ""));
    if (text_of(answer(host, bytes.substr(0, at), bytes.substr(at))) != whole) std::abort();
  }
  return 0;
}
