#include "node/runtime/cluster_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "node/runtime/options.h"

namespace pando::runtime {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::variant<Options, Exit> Parse(const std::vector<std::string>& args) {
  std::vector<const char*> argv = {"pando-node"};
  for (const std::string& arg : args) argv.push_back(arg.c_str());
  return ParseOptions(static_cast<int>(argv.size()), argv.data());
}

ClusterOptions Parsed(const std::vector<std::string>& args) {
  auto result = Parse(args);
  if (const auto* exit = std::get_if<Exit>(&result)) {
    ADD_FAILURE() << exit->text;
    return {};
  }
  return std::get<Options>(result).cluster;
}

std::string Refused(const std::vector<std::string>& args) {
  auto result = Parse(args);
  const auto* exit = std::get_if<Exit>(&result);
  return exit == nullptr ? "not refused" : exit->text;
}

TEST(ClusterOptions, WithoutAPeerPortThereIsNoCluster) {
  EXPECT_THAT(Parsed({}).peer_listen, IsEmpty());
  EXPECT_THAT(Parsed({"--no-sharing", "--insecure-peers"}).peer_listen, IsEmpty());
  EXPECT_THAT(Refused({"--peers", "a:1"}),
              AllOf(HasSubstr("--peers: found \"a:1\""), HasSubstr("--peer-listen")));
  EXPECT_THAT(Refused({"--data-listen", "1"}), HasSubstr("--peer-listen"));
}

TEST(ClusterOptions, WhereANodeListens) {
  const ClusterOptions plain = Parsed({"--peer-listen", "7001"});
  EXPECT_EQ(plain.peer_listen, "127.0.0.1:7001") << "loopback unless told otherwise";
  EXPECT_EQ(plain.data_listen, "127.0.0.1:0");
  const ClusterOptions v6 = Parsed({"--peer-listen", "[::1]:0", "--data-listen", "127.0.0.9:5"});
  EXPECT_EQ(v6.peer_listen, "[::1]:0");
  EXPECT_EQ(v6.data_listen, "127.0.0.9:5");
  EXPECT_THAT(Parsed({"--peer-listen", "7001", "--no-sharing"}).data_listen, IsEmpty());
  EXPECT_THAT(
      Parsed({"--peer-listen", "0.0.0.0:7001", "--insecure-peers", "--no-sharing"}).data_listen,
      IsEmpty());
  for (const char* odd : {"localhost:1", "::1:7", "[::1:7", "127.0.0.1", "1:65536", "x", "[a]:1"}) {
    EXPECT_THAT(Refused({"--peer-listen", odd}), HasSubstr("--peer-listen")) << odd;
  }
}

// FAULTS G5: what others could reach is refused until it is safe, or the operator says so.
TEST(ClusterOptions, BeyondLoopback) {
  EXPECT_THAT(Refused({"--peer-listen", "0.0.0.0:7001"}),
              AllOf(HasSubstr("--peer-listen: found \"0.0.0.0:7001\""), HasSubstr("TLS"),
                    HasSubstr("--insecure-peers")));
  EXPECT_THAT(Refused({"--peer-listen", "[2001:db8::1]:1"}), HasSubstr("--insecure-peers"));
  EXPECT_THAT(Refused({"--peer-listen", "1", "--data-listen", "192.0.2.1:0"}),
              AllOf(HasSubstr("--data-listen"), HasSubstr("--insecure-peers")));
  const ClusterOptions open =
      Parsed({"--insecure-peers", "--peer-listen", "192.0.2.1:1", "--data-listen", "192.0.2.1:2"});
  EXPECT_EQ(open.data_listen, "192.0.2.1:2");
  EXPECT_THAT(Refused({"--insecure-peers", "--peer-listen", "0.0.0.0:1"}),
              AllOf(HasSubstr("--data-listen"), HasSubstr("that peers can reach")));
}

TEST(ClusterOptions, Peers) {
  const std::vector<std::string> listen = {"--peer-listen", "1"};
  const auto with = [&](const std::string& peers) {
    return std::vector<std::string>{"--peer-listen", "1", "--peers", peers};
  };
  EXPECT_THAT(Parsed(listen).peers, IsEmpty());
  EXPECT_THAT(Parsed(with("a:1,10.0.0.2:7001,[::1]:3,a:1")).peers,
              ElementsAre("a:1", "10.0.0.2:7001", "[::1]:3"));
  EXPECT_EQ(Parsed(with("dns:nodes.svc:7001")).peers_dns, "nodes.svc:7001");
  for (const char* odd : {"a", "a:0", ":1", "a b:1", "dns:", "dns:a", "a:1,dns:b:1"}) {
    EXPECT_THAT(Refused(with(odd)), AllOf(HasSubstr("--peers"), HasSubstr("HOST:PORT"))) << odd;
  }
  std::string many;
  for (int i = 0; i < 257; ++i) many += "n" + std::to_string(i) + ":1,";
  EXPECT_THAT(Refused(with(many)), HasSubstr("at most 256"));
}

}  // namespace
}  // namespace pando::runtime
