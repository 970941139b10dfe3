#include "serve/http.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace heed::cli { namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kHead = "POST /api?x HTTP/1.1\r\nHost: here:1\r\nContent-Length: 4\r\n\r\n";

// Returns the status with which a request is refused, 0 if it is incomplete, kOk if it is complete.
int status_of(std::string_view bytes) {
  RequestReader reader;
  if (!reader.take(bytes)) return 0;
  return reader.refusal() ? reader.refusal()->status : kOk;
}

std::string get_with(const std::string& headers) { return "GET / HTTP/1.1\r\n" + headers + "\r\n"; }

TEST(RequestReader, ReadsARequestHoweverItIsCut) {
  const std::string bytes = std::string(kHead) + "body";
  for (std::size_t piece = 1; piece <= bytes.size(); ++piece) {
    RequestReader reader;
    bool is_whole = false;
    for (std::size_t begin = 0; begin < bytes.size(); begin += piece) {
      EXPECT_FALSE(is_whole);
      is_whole = reader.take(std::string_view(bytes).substr(begin, piece));
    }
    ASSERT_TRUE(is_whole);
    EXPECT_FALSE(reader.refusal());
    EXPECT_EQ(reader.request().method, "POST");
    EXPECT_EQ(reader.request().target, "/api?x");
    EXPECT_EQ(reader.request().path(), "/api");
    EXPECT_EQ(reader.request().header("host"), "here:1");
    EXPECT_EQ(reader.request().header("origin"), "");
    EXPECT_EQ(reader.request().body, "body");
  }
}

TEST(RequestReader, WhatFollowsTheRequestIsNoPartOfIt) {
  RequestReader reader;
  ASSERT_TRUE(reader.take(std::string(kHead) + "bodyGET / HTTP/1.1\r\nHost: inner\r\n\r\n"));
  EXPECT_EQ(reader.request().body, "body");
  EXPECT_EQ(reader.request().headers.size(), 2U);
}

TEST(RequestReader, WaitsForWhatIsMissing) {
  EXPECT_EQ(status_of(""), 0);
  EXPECT_EQ(status_of("GET / HT"), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nHost: a\r\n"), 0);
  EXPECT_EQ(status_of(std::string(kHead) + "bod"), 0);
  EXPECT_EQ(status_of(get_with("")), kOk);
}

TEST(RequestReader, RefusesWhatIsNotHttp) {
  for (const char* line :
       {"", " ", "nonsense", "GET /", "GET  HTTP/1.1", "GET / HTTP/9.9", "GET / http/1.1",
        "GET /\x01 HTTP/1.1", "GET /\xc3\xa9 HTTP/1.1", "G(T / HTTP/1.1", " GET / HTTP/1.1",
        "GET / / HTTP/1.1", "GET / HTTP/1.1 ", "GET\t/\tHTTP/1.1"}) {
    EXPECT_EQ(status_of(std::string(line) + "\r\n\r\n"), kBadRequest) << line;
  }
  for (const char* header :
       {"Host", ": a", "Ho st: a", "Host : a", " Host: a", "Host: a\r\n more: b", "Host: a\x01",
        "Host: a\nX: b", "Host: a\rX: b", "Host: a\x7f"}) {
    EXPECT_EQ(status_of(get_with(std::string(header) + "\r\n")), kBadRequest) << header;
  }
  EXPECT_EQ(status_of(std::string("GET /\0 HTTP/1.1\r\n\r\n", 19)), kBadRequest);
}

TEST(RequestReader, RefusesWhatCouldBeReadInTwoWays) {
  for (const char* name : {"Host", "Origin", "Content-Type", "Content-Length", "Expect"}) {
    const std::string header = std::string(name) + ": 0\r\n";
    EXPECT_EQ(status_of(get_with(header + header)), kBadRequest) << name;
  }
  EXPECT_EQ(status_of(get_with("Accept: a\r\nAccept: b\r\n")), kOk);
  EXPECT_EQ(status_of(get_with("Transfer-Encoding: chunked\r\n")), kLengthRequired);
  EXPECT_EQ(status_of(get_with("Content-Length: 4\r\nTransfer-Encoding: x\r\n")), kLengthRequired);
  EXPECT_EQ(status_of(get_with("Expect: 100-continue\r\n")), kExpectationFailed);
  for (const char* length : {"", "-1", "+1", "1,1", "0x1", "1 1", "a"}) {
    EXPECT_EQ(status_of(get_with("Content-Length: " + std::string(length) + "\r\n")), kBadRequest)
        << length;
  }
}

TEST(RequestReader, RefusesWhatIsTooLongBeforeItHasCome) {
  const std::string letters(RequestReader::kMaxHeadBytes, 'a');
  const auto line = [&](std::size_t size) { return "GET /" + letters.substr(0, size); };
  EXPECT_EQ(status_of(line(RequestReader::kMaxLineBytes - 6)), 0);
  EXPECT_EQ(status_of(line(RequestReader::kMaxLineBytes)), kUriTooLong);
  EXPECT_EQ(status_of(line(RequestReader::kMaxLineBytes) + " HTTP/1.1\r\n\r\n"), kUriTooLong);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + letters.substr(0, 8000)), 0);
  EXPECT_EQ(status_of("GET / HTTP/1.1\r\nA: " + letters), kHeadersTooLarge);
  std::string many = "GET / HTTP/1.1\r\n";
  while (many.size() < RequestReader::kMaxHeadBytes) many += "A: b\r\n";
  EXPECT_EQ(status_of(many + "\r\n"), kHeadersTooLarge);
  const std::string most = std::to_string(RequestReader::kMaxBodyBytes);
  const std::string more = std::to_string(RequestReader::kMaxBodyBytes + 1);
  EXPECT_EQ(status_of(get_with("Content-Length: " + most + "\r\n")), 0);
  for (const std::string& length : {more, std::string("99999999999999999999999")}) {
    EXPECT_EQ(status_of(get_with("Content-Length: " + length + "\r\n")), kPayloadTooLarge);
  }
}

TEST(HttpAnswer, SaysItsLengthAndThatItIsTheLast) {
  HttpAnswer answer = error_answer(kMethodNotAllowed, "a \"b\" \x80");
  answer.allowed = "POST";
  EXPECT_EQ(*answer.body, R"({"error":"a \"b\" \ufffd"})");
  EXPECT_THAT(head_of(answer),
              AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"),
                    HasSubstr("\r\nContent-Length: 26\r\n"), HasSubstr("\r\nConnection: close\r\n"),
                    HasSubstr("\r\nAllow: POST\r\n"), HasSubstr("frame-ancestors 'none'\r\n"),
                    EndsWith("\r\n\r\n")));
}

}  // namespace
}  // namespace heed::cli
