// The requests and answers of heed serve, independent of the transport.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "serve/http.h"

namespace heed::cli {

// True if a request's Host header names this server: "localhost" or a loopback address, with its
// port. This keeps out a page of another site that makes its own name resolve to this machine (DNS
// rebinding).
bool is_own_host(std::string_view host_header, int port);

// True if a request comes from a page of this server or from no page: an Origin header must be that
// of the server, and where Sec-Fetch-Site names another site, the request must open the page
// itself, as a link does.
bool is_own_origin(const HttpRequest& request);

// True if the server at `port` computes a sentence for the answer, rather than refusing or
// returning stored text.
bool is_computed(const HttpRequest& request, int port);

// Returns the answer of the server at `port`. GET / returns `page`. POST /api/attention takes a
// body {"sentence": "…", "heads": 4, "seed": 0}, of which only the sentence is required, and
// returns its attention in the format of the page's script. All other requests, and a foreign Host
// or Origin, get {"error": "…"}. No files are read.
HttpAnswer answer_request(const HttpRequest& request, int port,
                          const std::shared_ptr<const std::string>& page);

}  // namespace heed::cli
