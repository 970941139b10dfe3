// What heed serve is asked and what it answers, whatever carries it.
#pragma once

#include <string>
#include <string_view>

namespace heed::cli {

inline constexpr int kBadRequest = 400;
inline constexpr int kOk = 200;

// Longer bodies are refused unread: 512 long words need less.
inline constexpr std::size_t kMaxBodyBytes = 64 * 1024;

// Where a server listens.
struct Address {
  std::string host;
  int port = 0;
};

// Whether a request's Host header names this server. A name that is not a loopback address's and
// not the one the server was given is refused: a page of another site that makes its own name
// resolve to this machine (DNS rebinding) is so kept out. Away from the loopback interface numeric
// addresses are allowed too, which nobody else's name can hide behind.
bool is_own_host(std::string_view host_header, const Address& address);

// Whether a request's Origin header, empty where there is none, is that of a page of this server.
bool is_own_origin(std::string_view origin, std::string_view host_header);

// An answer in JSON.
struct Answer {
  int status = kOk;
  std::string json;
};

Answer error_answer(int status, std::string_view message);

// The attention of the sentence in `body`, {"sentence": "…", "heads": 4, "seed": 0} of which only
// the sentence must be there, as the page's script reads it; or {"error": "…"}.
Answer answer_attention(std::string_view body);

}  // namespace heed::cli
