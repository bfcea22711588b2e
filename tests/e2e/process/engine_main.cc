// e2e_engine: a stand-in engine as a process of its own, driven line by line over stdin.
//
//   e2e_engine SOCKET KEY ROLE SHARD WORLD_SIZE [PAUSE_STEP[:N]]
//
//   attach                        attached | not attached STATE
//   cycle SEED TOKENS             cycle HIT LOADED STORED WRONG SETTLED (after a request given up)
//   compute SEED TOKENS CLAIM_MS  cycle ... (it says that it will compute, so others may wait)
//   expire SEED TOKENS            expired (a claim of 200 ms that is never begun)
//   restart SEED TOKENS CLAIM_MS  restarted ATTACHED
//   load BOOT CLAIM SEED          loaded CODE GOOD WRONG REFUSED
//   store BOOT CLAIM SEED         stored CODE GOOD WRONG REFUSED
//
// At the N-th time its client reaches PAUSE_STEP it prints `paused STEP` and stops itself
// (SIGSTOP).
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <sstream>
#include <string>

#include "tests/e2e/process/child.h"
#include "tests/e2e/process/engine.h"

namespace {

class PauseAt : public pando::StepListener {
 public:
  explicit PauseAt(const std::string& what) {
    const size_t colon = what.find(':');
    step_ = what.substr(0, colon);
    if (colon != std::string::npos) left_ = std::stoi(what.substr(colon + 1));
  }
  void Reached(std::string_view step) override {
    if (step != step_ || --left_ != 0) return;
    std::cout << "paused " << step << std::endl;
    raise(SIGSTOP);
  }

 private:
  std::string step_;
  int left_ = 1;
};

void Print(const pando::e2e::Cycle& c) {
  std::cout << "cycle " << c.hit_blocks << ' ' << c.loaded << ' ' << c.stored << ' ' << c.wrong
            << ' ' << c.settled << std::endl;
}

}  // namespace

int main(int argc, char** argv) {
  using pando::client::Role;
  if (argc < 6) return 2;
  const std::string role = argv[3];
  PauseAt pause(argc > 6 ? argv[6] : "");
  pando::e2e::EngineOptions options;
  options.socket = argv[1];
  options.replica_key = argv[2];
  options.role = role == "scheduler" ? Role::kScheduler
                 : role == "worker"  ? Role::kWorker
                                     : Role::kBoth;
  options.shard = static_cast<uint32_t>(std::stoul(argv[4]));
  options.world_size = static_cast<uint32_t>(std::stoul(argv[5]));
  options.steps = &pause;
  pando::e2e::Engine engine(options);

  std::string line;
  while (std::getline(std::cin, line)) {
    std::istringstream words(line);
    std::string command;
    uint64_t a = 0, b = 0, c = 0;
    words >> command >> a >> b >> c;
    const int64_t claim_ns = c == 0 ? pando::e2e::kClaimNanos : static_cast<int64_t>(c) * 1'000'000;
    if (command == "attach") {
      const bool attached = engine.Attach(pando::e2e::Now() + 5 * pando::e2e::kSecond);
      std::cout << (attached ? "attached" : "not attached ")
                << (attached ? "" : std::to_string(static_cast<int>(engine.client().state())))
                << std::endl;
    } else if (command == "cycle") {
      engine.RunGivenUp(a, b);
      Print(engine.Run(a, b));
    } else if (command == "compute") {
      engine.RunGivenUp(a, b, claim_ns);
      Print(engine.Run(a, b, {.claim_ns = claim_ns, .intent = pando::client::Intent::kCompute}));
    } else if (command == "expire") {
      engine.Acquire(1'000'000, a, b, 200'000'000);
      std::cout << "expired" << std::endl;
    } else if (command == "restart") {
      std::cout << "restarted " << engine.Restart(a, b, claim_ns) << std::endl;
    } else if (command == "load" || command == "store") {
      const pando::client::Claim claim = {.boot_id = a, .id = b};
      const pando::e2e::Copied copied =
          command == "load" ? engine.Load(claim, c) : engine.Store(claim, c);
      std::cout << (command == "load" ? "loaded " : "stored ") << static_cast<int>(copied.code)
                << ' ' << copied.good << ' ' << copied.wrong << ' ' << copied.refused << std::endl;
    } else {
      std::cout << "unknown command" << std::endl;
    }
  }
  return 0;
}
