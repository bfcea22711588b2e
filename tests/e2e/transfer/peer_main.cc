// A transfer engine in a process of its own, for tests that kill it.
//
//   e2e_transfer_peer owner PAGES BYTES          "ready ADDRESS"; "revoke" -> "ended SENT"
//   e2e_transfer_peer requester PAGES BYTES ADDRESS   "first" (page came), "done STATUS ARRIVED"
#include <poll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/e2e/transfer/pages.h"
#include "transfer/ucx/ucx_engine.h"

namespace pando {
namespace {

int told = -1;

// False: stdin has ended.
bool Wait(std::string* line) {
  pollfd fds[2] = {{told, POLLIN, 0}, {0, POLLIN, 0}};
  poll(fds, 2, -1);
  uint64_t count = 0;
  if (fds[0].revents != 0 && read(told, &count, sizeof(count)) < 0) return false;
  if (fds[1].revents == 0) return true;
  char text[64];
  const ssize_t size = read(0, text, sizeof(text));
  if (size <= 0) return false;
  line->assign(text, static_cast<size_t>(size));
  return true;
}

int Main(const std::string& role, uint32_t pages, size_t bytes, const char* address) {
  told = eventfd(0, EFD_CLOEXEC);
  e2e::Pages memory(pages, bytes);
  auto engine = UcxEngine::Create({.notify = [] {
    const uint64_t one = 1;
    if (write(told, &one, sizeof(one)) < 0) std::abort();
  }});
  if (!engine.ok()) return 1;
  if (role == "owner") {
    (*engine)->Start(memory.ToOffer());
    std::printf("ready %s\n", (*engine)->address().c_str());
  } else {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    (*engine)->Start(memory.ToPull(1, address, (now.tv_sec + 60) * 1'000'000'000));
  }
  std::fflush(stdout);
  uint32_t arrived = 0;
  for (std::string line; Wait(&line); line.clear()) {
    if (line.starts_with("revoke")) (*engine)->Revoke(e2e::kGrant);
    std::vector<TransferEvent> events;
    (*engine)->TakeEvents(&events);
    for (const TransferEvent& event : events) {
      if (const auto* some = std::get_if<PullPages>(&event)) {
        if (arrived == 0) std::printf("first\n");
        for (const auto& page : some->pages) arrived += page.outcome == PageOutcome::kArrived;
      } else if (const auto* end = std::get_if<PullEnded>(&event)) {
        std::printf("done %d %u\n", static_cast<int>(end->status), arrived);
      } else {
        std::printf("ended %lu\n", std::get<GrantEnded>(event).pages_sent);
      }
    }
    std::fflush(stdout);
  }
  engine->reset();
  return 0;
}

}  // namespace
}  // namespace pando

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  return pando::Main(argv[1], static_cast<uint32_t>(std::atoi(argv[2])),
                     static_cast<size_t>(std::atol(argv[3])), argc > 4 ? argv[4] : "");
}
