// tokenizer_probe PATH: loads a tokenizer, reads a request from each line of standard input and
// writes an answer line:
//   {"text": …, "pair": …, "special": true, "parse": true}  {"ids": …, "ranges": …, "types": …}
//   {"ids": […], "skip": true}                              {"bytes": "68656c6c6f"}
//   {"ids": […], "skip": true, "context": […]}              {"bytes": …}, id by id behind others
//   {"messages": [["user", "Hello"], …], "prompt": true}    {"text": …, "ids": …} or {"error": …}
//   {"about": true}                                         {"size": …, "special": …, "roles": …}
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/core/error.h"
#include "heed/text/tokenizer.h"

namespace {

using nlohmann::json;
using Ids = std::vector<std::int64_t>;

json encoded(const heed::text::Tokenizer& tokenizer, const json& request) {
  const heed::text::EncodeOptions options{request.value("special", true),
                                          request.value("parse", true)};
  const auto text = request.at("text").get<std::string>();
  const auto encoding =
      request.contains("pair")
          ? tokenizer.encode_pair(text, request.at("pair").get<std::string>(), options)
          : tokenizer.encode(text, options);
  json ranges = json::array();
  for (const auto& [begin, end] : encoding.ranges) ranges.push_back({begin, end});
  return {{"ids", encoding.ids}, {"ranges", ranges}, {"types", encoding.type_ids}};
}

std::string streamed(const heed::text::Tokenizer& tokenizer, const Ids& context, const Ids& ids,
                     const heed::text::DecodeOptions& options) {
  const auto stream = tokenizer.stream(context, options);
  std::string text;
  for (const std::int64_t id : ids) text += stream->add(id);
  return text += stream->finish();
}

json decoded(const heed::text::Tokenizer& tokenizer, const json& request) {
  std::string hexadecimal;
  const heed::text::DecodeOptions options{request.value("skip", true)};
  const Ids ids = request.at("ids").get<Ids>();
  const std::string bytes =
      request.contains("context")
          ? streamed(tokenizer, request.at("context").get<Ids>(), ids, options)
          : tokenizer.decode(ids, options);
  for (const char byte : bytes) {
    hexadecimal += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return {{"bytes", hexadecimal}};
}

json rendered(const heed::text::Tokenizer& tokenizer, const json& request) {
  std::vector<heed::text::ChatMessage> messages;
  for (const json& message : request.at("messages")) {
    if (message.is_string()) {
      messages.push_back({.role = {}, .content = {}, .json = message});
    } else {
      messages.push_back({message[0], message[1]});
    }
  }
  const heed::text::ChatOptions options{.add_generation_prompt = request.value("prompt", true),
                                        .tools = request.value("tools", ""),
                                        .variables = request.value("variables", "")};
  try {
    return {{"text", tokenizer.apply_chat_template(messages, options)},
            {"ids", tokenizer.encode_chat(messages, options).ids}};
  } catch (const std::exception& error) {
    return {{"error", error.what()}};
  }
}

json described(const heed::text::Tokenizer& tokenizer) {
  Ids special;
  for (std::int64_t id = 0; id < tokenizer.vocab_size(); ++id) {
    if (tokenizer.is_special(id)) special.push_back(id);
  }
  const heed::text::SpecialTokens& known = tokenizer.special_tokens();
  const auto id_or_none = [](const std::optional<std::int64_t>& id) { return id.value_or(-1); };
  return {{"size", tokenizer.vocab_size()},
          {"special", special},
          {"roles",
           {id_or_none(known.begin), id_or_none(known.end), id_or_none(known.separator),
            id_or_none(known.padding), id_or_none(known.unknown), id_or_none(known.mask)}}};
}

json answer(const heed::text::Tokenizer& tokenizer, const json& request) {
  if (request.contains("messages")) return rendered(tokenizer, request);
  if (request.contains("about")) return described(tokenizer);
  return request.contains("text") ? encoded(tokenizer, request) : decoded(tokenizer, request);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw std::runtime_error("expected the path of a tokenizer");
    const auto tokenizer = heed::text::load_tokenizer(argv[1]);
    for (std::string line; std::getline(std::cin, line);) {
      std::cout << answer(*tokenizer, json::parse(line)) << '\n';
    }
  } catch (const std::exception& error) {
    fmt::print(stderr, "tokenizer_probe: {}\n", error.what());
    return 1;
  }
  return 0;
}
