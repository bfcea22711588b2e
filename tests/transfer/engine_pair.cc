#include "tests/transfer/engine_pair.h"

#include <gtest/gtest.h>

#include "transfer/loopback/loopback_engine.h"

namespace pando {
namespace {

class LoopbackPair final : public EnginePair {
 public:
  explicit LoopbackPair(const TransferLimits& limits) : network_({.limits = limits}) {
    network_.SetTime(1);
    owner = network_.Add("owner");
    requester = network_.Add("requester");
    owner_address = owner->address();
  }
  ~LoopbackPair() override {
    requester.reset();
    owner.reset();
  }

  Nanos Now() const override { return network_.now(); }
  bool Await(const std::function<bool()>& done) override {
    for (int i = 0; i < 1'000'000; ++i) {
      Take();
      if (done()) return true;
      if (network_.Step()) continue;
      const std::optional<Nanos> next = network_.NextTime();
      if (!next) return done();
      network_.SetTime(*next);
    }
    return false;
  }

 private:
  LoopbackNetwork network_;
};

}  // namespace

void Heard::Add(const std::vector<TransferEvent>& events) {
  for (const TransferEvent& event : events) {
    if (const auto* some = std::get_if<PullPages>(&event)) {
      EXPECT_FALSE(ended.contains(some->pull)) << "an outcome after the end";
      for (const PullPages::Page& page : some->pages) {
        EXPECT_TRUE(pages[some->pull].emplace(page.position, page.outcome).second)
            << "two outcomes of page " << page.position;
      }
    } else if (const auto* end = std::get_if<PullEnded>(&event)) {
      EXPECT_TRUE(ended.emplace(end->pull, *end).second) << "a pull ended twice";
    } else {
      grants.push_back(std::get<GrantEnded>(event));
    }
  }
}

uint32_t Heard::Count(uint64_t pull, PageOutcome outcome) const {
  const auto it = pages.find(pull);
  if (it == pages.end()) return 0;
  uint32_t count = 0;
  for (const auto& [position, is] : it->second) count += is == outcome;
  return count;
}

void EnginePair::Take() {
  std::vector<TransferEvent> events;
  if (owner) {
    owner->TakeEvents(&events);
    owner_heard.Add(events);
  }
  events.clear();
  if (requester) {
    requester->TakeEvents(&events);
    requester_heard.Add(events);
  }
}

std::unique_ptr<EnginePair> MakeLoopbackPair(const TransferLimits& limits) {
  return std::make_unique<LoopbackPair>(limits);
}

}  // namespace pando
