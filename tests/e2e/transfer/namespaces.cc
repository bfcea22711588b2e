#include "tests/e2e/transfer/namespaces.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <sstream>

#include "tests/e2e/process/child.h"

namespace pando::e2e {
namespace {

const char* const kEnv = "/usr/bin/env";

// Words of a command, to its end; its output, or nullopt if it failed.
std::optional<std::string> Run(const std::string& command) {
  std::vector<std::string> argv{kEnv};
  std::istringstream words(command);
  for (std::string word; words >> word;) argv.push_back(word);
  return RunToEnd(argv, Now() + 10 * kSecond);
}

void MustRun(const std::string& command) {
  EXPECT_TRUE(Run(command)) << command;
}

}  // namespace

Namespaces::Namespaces() : name_("pando-" + std::to_string(getpid()) + "-") {
  if (geteuid() != 0) {
    missing_ = "needs root, for network namespaces";
  } else if (!Run("ip -V") || !Run("tc -V")) {
    missing_ = "needs ip and tc (package iproute2)";
  } else if (!Run("ip netns add " + NameOf('a')) || !Run("ip netns add " + NameOf('b'))) {
    missing_ = "needs the right to add network namespaces (CAP_SYS_ADMIN)";
  } else if (!Run("ip -n " + NameOf('a') + " link add cable type veth peer name cable netns " +
                  NameOf('b'))) {
    missing_ = "needs a kernel with veth devices";
  }
  if (!missing_.empty()) return;
  for (const char host : {'a', 'b'}) {
    MustRun("ip -n " + NameOf(host) + " addr add " + AddressOf(host) + "/24 dev cable");
    MustRun("ip -n " + NameOf(host) + " link set lo up");
    MustRun("ip -n " + NameOf(host) + " link set cable up");
  }
  AwaitUp();
}

Namespaces::~Namespaces() {
  for (const char host : {'a', 'b'}) Run("ip netns del " + NameOf(host));
}

std::vector<std::string> Namespaces::In(char host) const {
  return {kEnv, "ip", "netns", "exec", NameOf(host)};
}

void Namespaces::Link(bool up) {
  MustRun("ip -n " + NameOf('b') + " link set cable " + (up ? "up" : "down"));
  if (up) AwaitUp();
}

// The kernel takes up to a second to believe in a carrier.
void Namespaces::AwaitUp() {
  for (const char host : {'a', 'b'}) {
    const int64_t end = Now() + 5 * kSecond;
    while (
        Run("ip -n " + NameOf(host) + " -br link show dev cable").value_or("").find("LOWER_UP") ==
        std::string::npos) {
      ASSERT_LT(Now(), end) << "the cable does not come up";
      poll(nullptr, 0, 20);
    }
  }
}

void Namespaces::Slow(char host, const std::string& rate, uint32_t queue_bytes) {
  MustRun("tc -n " + NameOf(host) + " qdisc replace dev cable root tbf rate " + rate +
          " burst 128k limit " + std::to_string(queue_bytes));
}

void Namespaces::Unslow(char host) {
  MustRun("tc -n " + NameOf(host) + " qdisc del dev cable root");
}

uint64_t Namespaces::Dropped(char host) {
  const std::string text = Run("tc -n " + NameOf(host) + " -s qdisc show dev cable").value_or("");
  const size_t at = text.find("dropped ");
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + 8, nullptr, 10);
}

}  // namespace pando::e2e
