// A transfer engine in a process of its own, for tests that stop it, kill it and cut its network.
//
//   e2e_transfer_peer PAGES BYTES [LISTEN [STALL_MS]]       says "ready ADDRESS", then obeys:
//
//   offer GRANT                "offered"
//   revoke GRANT               "ended GRANT SENT" when it has ended; its pages are spoiled then, so
//                              that one that is read later has wrong bytes
//   pull ID MS ADDRESS GRANT   "first ID" with the first outcome, "done ID STATUS ARRIVED BAD
//                              FAILED" at the end; its memory is stamped then, so that a late write
//                              shows
//   check                      "check clean", or "check dirty": memory of an ended pull has been
//                              written
//   counters                   "counters CONNECTIONS CLOSED STALLED"
//
// A page that arrived with other bytes than an owner has counts as BAD, whatever the engine says.
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>

#include "tests/e2e/transfer/pages.h"
#include "transfer/memory/unique_fd.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando::e2e {
namespace {

struct Pulled {
  std::unique_ptr<Pages> memory;
  uint32_t arrived = 0, bad = 0, failed = 0;
  bool ended = false;
};

class Peer {
 public:
  Peer(uint32_t pages, size_t bytes) : pages_(pages), bytes_(bytes), own_(pages, bytes) {}

  bool Open(const std::string& listen, Nanos stall_timeout) {
    auto engine = UcxEngine::Create({.listen = listen,
                                     .limits = {.stall_timeout = stall_timeout},
                                     .notify = [fd = told_.get()] {
                                       const uint64_t one = 1;
                                       if (write(fd, &one, sizeof(one)) < 0) std::abort();
                                     }});
    if (!engine.ok()) return false;
    engine_ = std::move(*engine);
    std::printf("ready %s\n", engine_->address().c_str());
    return true;
  }

  void Run() {
    std::fflush(stdout);
    while (Wait()) {
      for (size_t end = 0; (end = input_.find('\n')) != std::string::npos;) {
        Obey(input_.substr(0, end));
        input_.erase(0, end + 1);
      }
      std::vector<TransferEvent> events;
      engine_->TakeEvents(&events);
      for (const TransferEvent& event : events) Tell(event);
      std::fflush(stdout);
    }
    engine_.reset();  // before the memory it may touch
  }

 private:
  bool Wait() {  // false: stdin has ended
    pollfd fds[2] = {{told_.get(), POLLIN, 0}, {0, POLLIN, 0}};
    poll(fds, 2, -1);
    uint64_t count = 0;
    if (fds[0].revents != 0 && read(told_.get(), &count, sizeof(count)) < 0) return false;
    if (fds[1].revents == 0) return true;
    char text[256];
    const ssize_t size = read(0, text, sizeof(text));
    if (size <= 0) return false;
    input_.append(text, static_cast<size_t>(size));
    return true;
  }

  void Obey(const std::string& line) {
    std::istringstream words(line);
    std::string what, address;
    uint64_t id = 0, grant = 0;
    words >> what;
    if (what == "offer") {
      words >> grant;
      own_.Fill();
      std::printf(engine_->Start(own_.ToOffer(grant)) ? "offered\n" : "refused\n");
    } else if (what == "revoke") {
      words >> grant;
      engine_->Revoke(GrantOf(grant));
    } else if (what == "pull") {
      Nanos ms = 0;
      words >> id >> ms >> address >> grant;
      Pulled& pulled = pulls_[id];
      pulled.memory = std::make_unique<Pages>(pages_, bytes_);
      timespec now{};
      clock_gettime(CLOCK_MONOTONIC, &now);
      const Nanos deadline = now.tv_sec * 1'000'000'000 + now.tv_nsec + ms * 1'000'000;
      engine_->Start(pulled.memory->ToPull(id, address, deadline, grant));
    } else if (what == "check") {
      bool clean = true;
      for (const auto& [number, pulled] : pulls_) {
        clean = clean && (!pulled.ended || pulled.memory->IsStamped());
      }
      std::printf(clean ? "check clean\n" : "check dirty\n");
    } else if (what == "counters") {
      const TransferCounters counters = engine_->counters();
      std::printf("counters %lu %lu %lu\n", counters.connections, counters.connections_closed,
                  counters.connections_stalled);
    }
  }

  void Tell(const TransferEvent& event) {
    if (const auto* some = std::get_if<PullPages>(&event)) {
      Pulled& pulled = pulls_.at(some->pull);
      if (pulled.arrived + pulled.bad + pulled.failed == 0) std::printf("first %lu\n", some->pull);
      for (const auto& page : some->pages) {
        const bool arrived = page.outcome == PageOutcome::kArrived;
        const bool bad = page.outcome == PageOutcome::kBad ||
                         (arrived && !pulled.memory->IsRight(page.position));
        ++(bad ? pulled.bad : arrived ? pulled.arrived : pulled.failed);
      }
    } else if (const auto* end = std::get_if<PullEnded>(&event)) {
      Pulled& pulled = pulls_.at(end->pull);
      pulled.ended = true;
      pulled.memory->Stamp();
      std::printf("done %lu %d %u %u %u\n", end->pull, static_cast<int>(end->status),
                  pulled.arrived, pulled.bad, pulled.failed);
    } else {
      const auto& ended = std::get<GrantEnded>(event);
      own_.Spoil();
      std::printf("ended %lu %lu\n", ended.grant.low, ended.pages_sent);
    }
  }

  const uint32_t pages_;
  const size_t bytes_;
  UniqueFd told_{eventfd(0, EFD_CLOEXEC)};
  Pages own_;
  std::map<uint64_t, Pulled> pulls_;
  std::string input_;
  std::unique_ptr<UcxEngine> engine_;
};

}  // namespace
}  // namespace pando::e2e

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  pando::e2e::Peer peer(static_cast<uint32_t>(std::atoi(argv[1])),
                        static_cast<size_t>(std::atol(argv[2])));
  const std::string listen = argc > 3 ? argv[3] : "127.0.0.1:0";
  const pando::Nanos stall_ms = argc > 4 ? std::atoi(argv[4]) : 5000;
  if (!peer.Open(listen, stall_ms * 1'000'000)) return 1;
  peer.Run();
  return 0;
}
