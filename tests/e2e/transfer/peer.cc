#include "tests/e2e/transfer/peer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/paths.h"

namespace pando::e2e {
namespace {

std::vector<std::string> CommandOf(const PeerOptions& options) {
  std::vector<std::string> command = options.in;
  for (const std::string& word :
       {std::string(PANDO_BIN_DIR "/e2e_transfer_peer"), std::to_string(options.pages),
        std::to_string(options.bytes), options.listen, std::to_string(options.stall_ms)}) {
    command.push_back(word);
  }
  return command;
}

}  // namespace

Peer::Peer(const PeerOptions& options) : child_(CommandOf(options)) {
  const std::string ready = Expect("ready ");
  if (!ready.empty()) address_ = ready.substr(6);
}

std::string Peer::Expect(const std::string& answer, int seconds) {
  for (const int64_t end = Now() + seconds * kSecond;;) {
    const auto found = std::find_if(lines_.begin(), lines_.end(),
                                    [&](const auto& line) { return line.starts_with(answer); });
    if (found != lines_.end()) {
      std::string line = std::move(*found);
      lines_.erase(found);
      return line;
    }
    std::optional<std::string> line = child_.ReadLine(end);
    if (!line) break;
    lines_.push_back(std::move(*line));
  }
  ADD_FAILURE() << "no \"" << answer << "\" within " << seconds << " s";
  return "";
}

std::string Peer::Ask(const std::string& command, const std::string& answer, int seconds) {
  EXPECT_TRUE(child_.Send(command)) << "the peer has gone";
  return Expect(answer, seconds);
}

void Peer::Offer(uint64_t grant) {
  EXPECT_EQ(Ask("offer " + std::to_string(grant), "off"), "offered");
}

bool Peer::Revoke(uint64_t grant, int seconds) {
  return !Ask("revoke " + std::to_string(grant), "ended " + std::to_string(grant), seconds).empty();
}

void Peer::Pull(uint64_t id, int ms, const std::string& address, uint64_t grant) {
  EXPECT_TRUE(child_.Send("pull " + std::to_string(id) + " " + std::to_string(ms) + " " + address +
                          " " + std::to_string(grant)));
}

std::optional<PullDone> Peer::Done(uint64_t id, int seconds) {
  const std::string prefix = "done " + std::to_string(id) + " ";
  const std::string line = Expect(prefix, seconds);
  if (line.empty()) return std::nullopt;
  std::istringstream words(line.substr(prefix.size()));
  PullDone done;
  int status = 0;
  words >> status >> done.arrived >> done.bad >> done.failed;
  done.status = static_cast<PullStatus>(status);
  return done;
}

std::vector<uint64_t> Peer::Counters() {
  std::istringstream words(Ask("counters", "counters "));
  std::string name;
  std::vector<uint64_t> counters(3);
  words >> name >> counters[0] >> counters[1] >> counters[2];
  return counters;
}

void Peer::Stop() {
  child_.Signal(SIGSTOP);
  EXPECT_TRUE(child_.WaitStopped(Now() + 10 * kSecond));
}

size_t Peer::Descriptors() const {
  const std::filesystem::directory_iterator files("/proc/" + std::to_string(child_.pid()) + "/fd");
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

Peer::Use Peer::Used() const {
  Use use;
  const std::string tasks = "/proc/" + std::to_string(child_.pid()) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks)) {
    std::ifstream status(task.path() / "status");
    for (std::string word; status >> word;) {
      uint64_t count = 0;
      if (word.ends_with("voluntary_ctxt_switches:") && status >> count) use.switches += count;
    }
    int64_t ran = 0;
    if (std::ifstream(task.path() / "schedstat") >> ran) use.cpu += ran;
  }
  return use;
}

}  // namespace pando::e2e
