#include "serve/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "heed/core/error.h"
#include "support/heap.h"

namespace heed::cli { namespace {

using namespace std::chrono_literals;  // NOLINT(google-build-using-namespace): 10min
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::ThrowsMessage;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

// A client that may violate the protocol.
class Client {
 public:
  explicit Client(int port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    // A small buffer between the server and a client that does not read.
    const int bytes = 4096;
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }

  // Sends bytes; returns false once the connection is closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count < 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // Reads until the server ends the connection.
  std::string read() {
    std::string text;
    char buffer[4096];
    for (ssize_t count = 0; (count = ::recv(socket_.get(), buffer, sizeof buffer, 0)) > 0;) {
      text.append(buffer, static_cast<std::size_t>(count));
    }
    return text;
  }

  std::string ask(std::string_view bytes) {
    send(bytes);
    return read();
  }

 private:
  platform::FileDescriptor socket_;
};

// Serves until destroyed. The answer is the request's target and `filling`.
class RunningServer {
 public:
  explicit RunningServer(const ConnectionTimes& times, std::size_t filling = 0)
      : server_(0, {[this, filling](const HttpRequest& request) {
                  ++num_answered_;
                  if (request.target == "/throw") throw std::runtime_error("no");
                  std::string body = request.target;
                  body.resize(body.size() + filling, '.');
                  return HttpAnswer{.body = std::make_shared<const std::string>(std::move(body))};
                }},
                times) {
    EXPECT_EQ(::pipe2(stop_, O_CLOEXEC), 0);
    thread_ = std::thread([this] { server_.run(stop_[0]); });
  }
  ~RunningServer() {
    stop();
    ::close(stop_[0]);
    ::close(stop_[1]);
  }
  RunningServer(const RunningServer&) = delete;
  RunningServer& operator=(const RunningServer&) = delete;

  void stop() {
    if (!thread_.joinable()) return;
    EXPECT_EQ(::write(stop_[1], "x", 1), 1);
    thread_.join();
  }

  int port() const { return port_; }
  int num_answered() const { return num_answered_; }
  std::string ask(std::string_view bytes) { return Client(port_).ask(bytes); }

 private:
  HttpServer server_;
  int port_ = server_.port();
  std::atomic<int> num_answered_ = 0;
  int stop_[2] = {-1, -1};
  std::thread thread_;
};

constexpr ConnectionTimes kPatient{10min, 10min, 10min, 10min};

TEST(HttpServer, AnswersOneRequestAConnection) {
  RunningServer server(kPatient);
  const std::string answer = server.ask(std::string(kGet) + "GET /second HTTP/1.1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_EQ(answer.substr(answer.find("\r\n\r\n")), "\r\n\r\n/");
  EXPECT_EQ(server.num_answered(), 1);
}

TEST(HttpServer, ARequestHiddenInTheBodyOfARefusedOneIsNotAnswered) {
  RunningServer server(kPatient);
  const std::string body = std::string(100'000, ' ') + "GET /inner HTTP/1.1\r\nHost: a\r\n\r\n";
  for (const std::string& head :
       {std::string("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"),
        std::string("POST / HTTP/1.1\r\nContent-Length: 999999\r\n\r\n"),
        std::string("x\r\n\r\n")}) {
    const std::string answer = server.ask(head + body);
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 4"));
    EXPECT_EQ(answer.find("\r\nHTTP/1.1"), answer.npos);
    EXPECT_EQ(answer.find("HTTP/1.1 200"), answer.npos);
  }
  EXPECT_EQ(server.num_answered(), 0);
}

TEST(HttpServer, RangesAreNotReadAndHeadGetsNoBody) {
  RunningServer server(kPatient);
  std::string ranges = "GET / HTTP/1.1\r\nRange: bytes=0-0";
  for (int i = 0; i < 2600; ++i) ranges += ",0-0";
  EXPECT_THAT(server.ask(ranges + "\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string head = server.ask("HEAD /abc HTTP/1.1\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_EQ(head.substr(head.find("\r\n\r\n")), "\r\n\r\n");
}

TEST(HttpServer, WhatTheHandlerThrowsIsAnAnswer) {
  RunningServer server(kPatient);
  EXPECT_THAT(server.ask("GET /throw HTTP/1.1\r\n\r\n"),
              StartsWith("HTTP/1.1 500 Internal Server Error\r\n"));
  EXPECT_THAT(server.ask(kGet), StartsWith("HTTP/1.1 200"));
}

// As many clients as connections, none of which proceeds.
TEST(HttpServer, SlowClientsHoldUpNobody) {
  RunningServer server(kPatient);
  std::vector<Client> slow;
  for (std::size_t i = 0; i < 3 * HttpServer::kMaxConnections; ++i) {
    slow.emplace_back(server.port()).send("GET / HT");
    if (i % 16 == 0) {
      EXPECT_THAT(server.ask(kGet), StartsWith("HTTP/1.1 200"));
    }
  }
  for (Client& client : slow) client.send("T");
  EXPECT_THAT(server.ask(kGet), StartsWith("HTTP/1.1 200"));
}

TEST(HttpServer, AByteNowAndThenDoesNotKeepAConnection) {
  RunningServer server({100ms, 10min, 100ms});
  Client client(server.port());
  client.send("GET / HTTP/1.1\r\nX: ");
  while (client.send("x")) std::this_thread::sleep_for(1ms);
  Client silent(server.port());
  EXPECT_THAT(silent.ask("GET"), StartsWith("HTTP/1.1 408 Request Timeout\r\n"));
}

TEST(HttpServer, AnswersThatNobodyTakesAreDropped) {
  constexpr std::size_t kBytes = 4 << 20;
  RunningServer server({10min, 100ms, 100ms}, kBytes);
  Client client(server.port());
  client.send(kGet);
  // Other clients are answered; whether all bytes pass in time depends on the machine.
  EXPECT_EQ(server.ask(kGet).substr(0, 12), "HTTP/1.1 200");
  while (client.send("x")) std::this_thread::sleep_for(1ms);
  EXPECT_THAT(client.read().size(), testing::Lt(kBytes));
}

TEST(HttpServer, UnreadConnectionsAreBoundedInMemory) {
  constexpr std::int64_t kBytes = 1 << 20;
  RunningServer server(kPatient, kBytes);
  testing_support::reset_heap_peak();
  const std::int64_t before = testing_support::live_heap_bytes();
  std::vector<Client> unread;
  for (std::size_t i = 0; i < 3 * HttpServer::kMaxConnections; ++i) {
    unread.emplace_back(server.port()).send(kGet);
    if (i % 16 == 0) {
      EXPECT_THAT(server.ask(kGet), StartsWith("HTTP/1.1 200"));
    }
  }
  EXPECT_LT(testing_support::peak_heap_bytes() - before,
            static_cast<std::int64_t>(HttpServer::kMaxConnections + 8) * kBytes * 3 / 2);
}

TEST(HttpServer, StoppingDropsRequestsAndFinishesAnswers) {
  constexpr std::size_t kBytes = 4 << 20;
  RunningServer server(kPatient, kBytes);
  Client idle(server.port());
  Client half(server.port());
  half.send("GET / ");
  Client taking(server.port());
  taking.send(kGet);
  while (server.num_answered() == 0) std::this_thread::yield();
  std::string taken;
  std::thread reader([&] { taken = taking.read(); });
  server.stop();
  reader.join();
  EXPECT_GT(taken.size(), kBytes);
  EXPECT_THAT(idle.read(), IsEmpty());
  EXPECT_THAT(half.read(), IsEmpty());
}

// Records the order of answers. The first expensive answer waits until hurry() is called.
class Kitchen {
 public:
  HttpService service() {
    return {.answer = [this](const HttpRequest& request) { return cook(request.target); },
            .is_expensive =
                [](const HttpRequest& request) { return request.target.starts_with("/slow"); }};
  }
  void wait_for_first() {
    while (!has_begun_) std::this_thread::yield();
  }
  void hurry() { is_hurried_ = true; }
  const std::vector<std::string>& order() const { return order_; }

 private:
  HttpAnswer cook(const std::string& target) {
    order_.push_back(target);
    has_begun_ = true;
    while (!is_hurried_) std::this_thread::yield();
    return {.body = std::make_shared<const std::string>(target)};
  }

  std::atomic<bool> has_begun_ = false;
  std::atomic<bool> is_hurried_ = false;
  std::vector<std::string> order_;
};

std::string get(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: a\r\n\r\n";
}

TEST(HttpServer, CheapRequestsDoNotWaitForExpensiveOnesWhichAreBounded) {
  Kitchen kitchen;
  HttpServer server(0, kitchen.service(), kPatient);
  int stop[2];
  ASSERT_EQ(::pipe2(stop, O_CLOEXEC), 0);
  std::thread thread([&] { server.run(stop[0]); });
  Client first(server.port());
  first.send(get("/slow"));
  kitchen.wait_for_first();
  constexpr std::size_t kMore = HttpServer::kMaxWaiting + 3;
  std::vector<std::unique_ptr<Client>> more;
  for (std::size_t i = 0; i < kMore; ++i) {
    more.push_back(std::make_unique<Client>(server.port()));
    more.back()->send(get("/slow/" + std::to_string(i)));
  }
  Client page(server.port());
  page.send(get("/page"));
  kitchen.hurry();
  EXPECT_THAT(page.read(), HasSubstr("/page"));
  for (std::size_t i = 0; i < kMore; ++i) {
    EXPECT_THAT(more[i]->read(),
                HasSubstr(i < HttpServer::kMaxWaiting ? "/slow/" + std::to_string(i)
                                                      : std::string("503 Service Unavailable")));
  }
  EXPECT_EQ(::write(stop[1], "x", 1), 1);
  thread.join();
  ASSERT_EQ(kitchen.order().size(), 2 + HttpServer::kMaxWaiting);
  EXPECT_EQ(kitchen.order()[1], "/page");
  EXPECT_EQ(kitchen.order()[2], "/slow/0");
  ::close(stop[0]);
  ::close(stop[1]);
}

TEST(HttpServer, SaysWhereItCannotListen) {
  const HttpServer first(0, {});
  EXPECT_THAT([&] { HttpServer(first.port(), {}); },
              ThrowsMessage<IoError>(
                  HasSubstr("cannot listen at http://127.0.0.1:" + std::to_string(first.port()) +
                            "/: the port is in use or not permitted")));
}

}  // namespace
}  // namespace heed::cli
