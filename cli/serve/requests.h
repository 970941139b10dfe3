// What heed serve is asked and what it answers, whatever carries it.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/http.h"
#include "serve/http_server.h"

namespace heed::cli {

// Whether a request's Host header names this server. A name that is not a loopback address's and
// not the one the server was given is refused: a page of another site that makes its own name
// resolve to this machine (DNS rebinding) is so kept out. Away from the loopback interface numeric
// addresses are allowed too, which nobody else's name can hide behind.
bool is_own_host(std::string_view host_header, const Address& address);

// Whether a request comes from a page of this server, or from no page: its Origin header, where it
// has one, is that of the server, and where a browser says in Sec-Fetch-Site that another site
// asks, it opens the page itself, as a link does.
bool is_own_origin(const HttpRequest& request);

// Whether the server at `address` computes a sentence to answer, instead of looking something up
// or refusing.
bool is_computed(const HttpRequest& request, const Address& address);

// What the server at `address` answers: GET / is `page`, POST /api/attention takes a body
// {"sentence": "…", "heads": 4, "seed": 0}, of which only the sentence must be there, and answers
// with its attention as the page's script reads it. All else, a foreign Host or Origin too, is
// answered with {"error": "…"}. Nothing is read from files.
HttpAnswer answer_request(const HttpRequest& request, const Address& address,
                          const std::shared_ptr<const std::string>& page);

}  // namespace heed::cli
