// Seeds that are scripts: what engines and peers do in a day.
#include <initializer_list>

#include "tests/fuzz/script.h"
#include "tests/fuzz/seeds.h"

namespace pando::fuzz {
namespace {

using Operations = std::vector<Operation>;

constexpr uint8_t kSecond = 30, kMinute = 36, kHour = 42;  // about, as NanosOf has it
constexpr uint8_t kAll = 200;
constexpr uint8_t kProcess = 64;  // number 1, as an attach says it

// Shapes of attaches: engines_attach.cc.
constexpr uint8_t kPairs = 0, kTwoShards = 2, kLargePages = 4;

Operation Op(Kind kind, Operation rest = {}) {
  rest.kind = kind;
  return rest;
}

// An engine of one session in `who`.
Operations Engine(uint8_t who, uint8_t shape) {
  return {Op(Kind::kOpen, {.who = who}),
          Op(Kind::kAttach,
             {.who = who, .request = who, .prompt = shape, .time = 1, .more = kProcess})};
}

Operations Store(uint8_t who, uint8_t prompt, uint8_t tokens, uint8_t form = 0) {
  return {Op(Kind::kReserve,
             {.who = who, .prompt = prompt, .tokens = tokens, .form = form, .to = kAll}),
          Op(Kind::kBegin, {.who = who}), Op(Kind::kEnd, {.who = who})};
}

Operations Load(uint8_t who, uint8_t prompt, uint8_t tokens, uint8_t form = 0) {
  return {Op(Kind::kAcquire,
             {.who = who, .request = 1, .prompt = prompt, .tokens = tokens, .form = form}),
          Op(Kind::kBegin, {.who = who}), Op(Kind::kEnd, {.who = who}),
          Op(Kind::kSettle, {.who = who, .request = 1, .to = 4})};
}

Operations Together(const std::vector<Operations>& parts) {
  Operations all;
  for (const Operations& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Seed SeedOf(const char* name, bool peers, const Start& start, const Operations& operations) {
  const std::vector<uint8_t> bytes = EncodeScript({peers, start, operations});
  return {peers ? "peer_calls" : "client_requests", name, {bytes.begin(), bytes.end()}};
}

// ---- Engines

Operations TwoEngines() {
  return Together({Engine(0, kPairs),
                   Engine(1, kPairs),
                   Store(0, 0, 9),
                   Load(1, 0, 9),
                   Store(1, 0b00001100, 12),
                   Load(0, 0b00001100, 13),
                   {Op(Kind::kProbe, {.prompt = 4, .tokens = 20})}});
}

Operations Scopes() {
  Operations all = Engine(0, kPairs);
  for (const uint8_t form :
       std::initializer_list<uint8_t>{0x01, 0x02, 0x04, 0x18, 0x29, 0x1c, 0x03, 0xff}) {
    all = Together({all, Store(0, 1, 16, form), Load(0, 1, 17, form)});
  }
  return all;
}

Operations Shards() {
  return {Op(Kind::kOpen),
          Op(Kind::kAttach, {.prompt = kTwoShards}),
          Op(Kind::kOpen, {.who = 1}),
          Op(Kind::kAttach, {.who = 1, .prompt = kTwoShards, .from = 1}),
          Op(Kind::kProbe, {.tokens = 8}),
          Op(Kind::kOpen, {.who = 2}),
          Op(Kind::kAttach, {.who = 2, .prompt = kTwoShards, .from = 1, .to = 1}),
          Op(Kind::kReserve, {.tokens = 12, .to = kAll}),
          Op(Kind::kBegin, {.who = 1}),
          Op(Kind::kBegin, {.who = 2}),
          Op(Kind::kEnd, {.who = 1}),
          Op(Kind::kEnd, {.who = 2}),
          Op(Kind::kAcquire, {.request = 1, .tokens = 13}),
          Op(Kind::kBegin, {.who = 1}),
          Op(Kind::kEnd, {.who = 1, .odd = 4}),
          Op(Kind::kBegin, {.who = 2}),
          Op(Kind::kExit, {.who = 2}),
          Op(Kind::kClose, {.who = 2}),
          Op(Kind::kOpen, {.who = 3}),
          Op(Kind::kAttach, {.who = 3, .prompt = kTwoShards, .from = 1, .to = 1, .more = kProcess}),
          Op(Kind::kOpen, {.who = 4}),
          Op(Kind::kAttach,
             {.who = 4, .prompt = kTwoShards, .form = 131, .from = 1, .to = 1, .more = kProcess}),
          Op(Kind::kClose)};
}

Operations Late() {
  return Together({Engine(0, kLargePages),
                   Engine(1, kLargePages),
                   {Op(Kind::kReserve, {.tokens = 200, .to = kAll, .time = kSecond}),
                    Op(Kind::kBegin), Op(Kind::kTick, {.time = kMinute}),
                    Op(Kind::kReserve, {.who = 1, .tokens = 200, .to = kAll}),
                    Op(Kind::kReserve, {.prompt = 1, .tokens = 80, .to = kAll}),
                    Op(Kind::kAcquire, {.request = 2, .tokens = 80}), Op(Kind::kEnd, {.which = 1}),
                    Op(Kind::kEnd, {.which = 0, .odd = 1}),
                    Op(Kind::kReserve, {.tokens = 32, .to = kAll, .time = 241}),
                    Op(Kind::kReserve, {.tokens = 32, .to = kAll, .odd = 1}),
                    Op(Kind::kReserve, {.tokens = 32, .to = kAll}), Op(Kind::kBegin),
                    Op(Kind::kAbort), Op(Kind::kClose), Op(Kind::kExit)}});
}

Operations Waiting() {
  return Together({Engine(0, kPairs),
                   Engine(1, kPairs),
                   {Op(Kind::kAcquire, {.request = 1, .tokens = 21, .more = 1}),
                    Op(Kind::kAcquire, {.who = 1, .request = 1, .tokens = 21, .more = 1}),
                    Op(Kind::kAwait, {.who = 1, .time = kMinute}),
                    Op(Kind::kAwait, {.who = 1, .time = kMinute}),
                    Op(Kind::kReserve, {.request = 1, .to = 5, .more = 1}),
                    Op(Kind::kBegin),
                    Op(Kind::kEnd),
                    Op(Kind::kReserve, {.request = 1, .tokens = 6, .to = kAll, .more = 3}),
                    Op(Kind::kBegin),
                    Op(Kind::kEnd),
                    Op(Kind::kAwait, {.who = 1, .time = kSecond}),
                    Op(Kind::kTick, {.time = kMinute}),
                    Op(Kind::kAcquire, {.request = 2, .prompt = 1, .tokens = 21, .more = 1}),
                    Op(Kind::kAcquire, {.who = 1, .request = 2, .prompt = 1, .tokens = 21}),
                    Op(Kind::kAwait, {.who = 1, .time = kHour}),
                    Op(Kind::kSettle, {.request = 2, .odd = 2}),
                    Op(Kind::kSettle, {.who = 1, .request = 2, .odd = 3}),
                    Op(Kind::kAwait, {.who = 1, .which = 251}),
                    Op(Kind::kReserve, {.request = 1, .tokens = 9, .odd = 2, .more = 3}),
                    Op(Kind::kDrain, {.odd = 1}),
                    Op(Kind::kAcquire, {.request = 3, .tokens = 9})}});
}

Operations Crowded() {
  Operations all = Together({Engine(0, kPairs), Engine(1, kTwoShards), Engine(2, 1)});
  for (uint8_t prompt = 0; prompt < 24; ++prompt) {
    all = Together({all, Store(prompt % 3, prompt, 10), Load(prompt % 3, prompt / 2, 11)});
  }
  // What is pinned stays, more than there can be is refused, and what the engine has is only used.
  return Together({all,
                   {Op(Kind::kAcquire, {.request = 2, .prompt = 21, .tokens = 11}),
                    Op(Kind::kAcquire, {.request = 3, .prompt = 18, .tokens = 11, .from = 11})},
                   Store(0, 1, 20),
                   Store(0, 5, 20),
                   Store(0, 9, 20),
                   Store(0, 13, 20),
                   {Op(Kind::kExtent)},
                   Store(0, 3, 200),
                   Store(2, 3, 40)});
}

Operations Refusals() {
  Operations all;
  for (uint8_t odd = 0; odd < 22; ++odd) {
    const uint8_t shape = odd % 3;
    const uint8_t who = odd % 8;
    all.push_back(Op(Kind::kOpen, {.who = who}));
    all.push_back(
        Op(Kind::kAttach,
           {.who = who, .request = static_cast<uint8_t>(odd / 4), .prompt = shape, .odd = odd}));
    all.push_back(Op(Kind::kReserve, {.who = who, .tokens = 9, .from = 9, .to = 2}));
    all.push_back(Op(Kind::kRefused, {.more = odd}));
  }
  for (const uint8_t which : std::initializer_list<uint8_t>{250, 251}) {
    all.push_back(Op(Kind::kBegin, {.which = which}));
    all.push_back(Op(Kind::kEnd, {.which = which}));
    all.push_back(Op(Kind::kAbort, {.which = which}));
  }
  all.push_back(Op(Kind::kBegin, {.odd = 2}));
  return all;
}

Operations BadPages() {
  Operations all =
      Together({Engine(0, kPairs), Engine(1, kPairs), Store(0, 0, 20), Store(0, 8, 20)});
  for (const uint8_t odd : std::initializer_list<uint8_t>{2, 3, 4, 5, 6}) {
    all = Together({all,
                    {Op(Kind::kAcquire, {.request = odd, .tokens = 21}), Op(Kind::kBegin),
                     Op(Kind::kAcquire, {.who = 1, .request = odd, .tokens = 21}),
                     Op(Kind::kBegin, {.who = 1}),
                     Op(Kind::kEnd, {.which = 1, .from = 3, .to = 5, .odd = odd}),
                     Op(Kind::kEnd, {.who = 1, .from = 2, .odd = odd}),
                     Op(Kind::kReserve, {.tokens = 20, .to = kAll}), Op(Kind::kBegin),
                     Op(Kind::kEnd, {.from = 1, .odd = odd}), Op(Kind::kEnd)}});
  }
  return all;
}

// ---- Peers

// All three nodes answer the first hello, and tell of `tokens` tokens of a prompt.
Operations Told(uint8_t prompt, uint8_t tokens) {
  Operations all = {Op(Kind::kAnswer), Op(Kind::kAnswer), Op(Kind::kAnswer)};
  for (uint8_t stream = 0; stream < 3; ++stream) {
    all.push_back(Op(Kind::kFeed,
                     {.which = stream, .prompt = prompt, .tokens = tokens, .to = kAll, .odd = 8}));
  }
  return all;
}

Operations Fetch() {
  return Together({Engine(0, kPairs),
                   Engine(1, kPairs),
                   Told(0, 20),
                   {Op(Kind::kAcquire, {.request = 1, .tokens = 21}),
                    Op(Kind::kAcquire, {.who = 1, .request = 1, .tokens = 21}),
                    Op(Kind::kAwait, {.which = 1, .time = kMinute}),
                    Op(Kind::kAwait, {.who = 1, .time = kMinute}), Op(Kind::kAnswer, {.from = 4}),
                    Op(Kind::kPulled, {.to = 2, .more = 0}),
                    Op(Kind::kPulled, {.form = 3, .to = kAll, .time = 20}), Op(Kind::kAnswer),
                    Op(Kind::kAnswer), Op(Kind::kPulled, {.form = 3, .to = kAll, .time = 20}),
                    Op(Kind::kBegin, {.which = 1}), Op(Kind::kBegin, {.who = 1}), Op(Kind::kBegin),
                    Op(Kind::kEnd, {.which = 1}), Op(Kind::kEnd, {.who = 1}), Op(Kind::kEnd),
                    Op(Kind::kSettle, {.request = 1, .tokens = 4, .to = 8}),
                    Op(Kind::kSettle, {.who = 1, .request = 1, .tokens = 4, .to = 8})}});
}

Operations FetchesThatFail() {
  Operations all = Together({Engine(0, kLargePages), Told(0, 200), Told(4, 200)});
  for (uint8_t odd = 2; odd < 12; ++odd) {
    all = Together(
        {all,
         {Op(Kind::kAcquire, {.request = odd, .tokens = 81}), Op(Kind::kAwait, {.time = kMinute}),
          Op(Kind::kAnswer, {.odd = odd}), Op(Kind::kAnswer),
          Op(Kind::kPulled, {.form = 1, .from = odd, .more = odd}), Op(Kind::kAnswer),
          Op(Kind::kPulled, {.form = 1, .from = 1}), Op(Kind::kTick, {.time = kMinute}),
          Op(Kind::kAnswer), Op(Kind::kFeed, {.prompt = 0, .tokens = 200, .to = kAll})}});
  }
  return all;
}

Operations Grants() {
  Operations all = Together({Engine(0, kPairs), Store(0, 0, 20), {Op(Kind::kHello)}});
  for (uint8_t odd = 5; odd < 16; ++odd) all.push_back(Op(Kind::kHello, {.who = 1, .odd = odd}));
  for (uint8_t odd = 0; odd < 7; ++odd) {
    all.push_back(Op(Kind::kGrant, {.tokens = 20, .from = 2, .to = 8, .time = 5, .odd = odd}));
  }
  return Together(
      {all,
       {Op(Kind::kDone, {.which = 0, .odd = 2}), Op(Kind::kSent, {.which = 1, .more = 6}),
        Op(Kind::kSent, {.which = 0, .more = 6}), Op(Kind::kHello, {.who = 1}),
        Op(Kind::kHello, {.who = 2, .odd = 14}), Op(Kind::kDone, {.who = 1, .odd = 3}),
        Op(Kind::kReserve, {.prompt = 1, .tokens = 40, .to = kAll}), Op(Kind::kBegin),
        Op(Kind::kEnd), Op(Kind::kTick, {.time = kMinute}), Op(Kind::kGoodbye),
        Op(Kind::kGrant, {.tokens = 20, .to = 4})}});
}

Operations Feeds() {
  Operations all = Together({Engine(0, kPairs), Store(0, 0, 20)});
  for (uint8_t node = 0; node < 3; ++node) {
    all.push_back(Op(Kind::kHello, {.who = node}));
    all.push_back(Op(Kind::kSubscribe, {.who = node}));
    all.push_back(Op(Kind::kFeedReady));
  }
  for (uint8_t prompt = 0; prompt < 4; ++prompt) {
    all = Together({all,
                    Store(0, prompt * 4, 30),
                    {Op(Kind::kAcquire, {.request = prompt, .prompt = 9, .tokens = 20, .more = 1}),
                     Op(Kind::kTick, {.time = 27}), Op(Kind::kFeedReady),
                     Op(Kind::kFeedReady, {.which = 1}), Op(Kind::kTick, {.time = 35}),
                     Op(Kind::kFeedReady), Op(Kind::kSettle, {.request = prompt})}});
  }
  return Together({all,
                   {Op(Kind::kUnsubscribe), Op(Kind::kSubscribe, {.who = 0}),
                    Op(Kind::kSubscribe, {.who = 1, .odd = 2}), Op(Kind::kFeedReady),
                    Op(Kind::kGoodbye, {.who = 1}), Op(Kind::kDrain, {.odd = 1})}});
}

Operations TruthAndLies() {
  Operations all = Together({Engine(0, kPairs), Told(0, 20)});
  all.push_back(Op(Kind::kFeed, {.which = 1, .request = 3, .odd = 10}));
  for (uint8_t what = 0; what < 7; ++what) {
    all.push_back(
        Op(Kind::kFeed, {.request = what, .prompt = 4, .tokens = 16, .to = kAll, .more = what}));
  }
  for (uint8_t odd = 2; odd < 10; ++odd) {
    all.push_back(Op(Kind::kFeed, {.request = 3, .tokens = 9, .to = kAll, .odd = odd}));
    all.push_back(Op(Kind::kFeedEnds, {.which = odd}));
    all.push_back(Op(Kind::kTick, {.time = 32}));
    all.push_back(Op(Kind::kAnswer, {.odd = odd}));
    all.push_back(Op(Kind::kAnswer));
    all.push_back(Op(Kind::kFeed, {.tokens = 9, .to = kAll}));
  }
  all.push_back(Op(Kind::kPeers, {.from = 2}));
  all.push_back(Op(Kind::kTick, {.time = kHour}));
  all.push_back(Op(Kind::kPeers, {.from = 7}));
  return all;
}

Operations Makers() {
  return Together({Engine(0, kPairs),
                   Told(1, 8),
                   {Op(Kind::kFeed, {.request = 5, .prompt = 0, .tokens = 20, .to = kAll}),
                    Op(Kind::kAcquire, {.request = 1, .tokens = 21, .more = 1}),
                    Op(Kind::kAwait, {.time = kMinute}),
                    Op(Kind::kFeed, {.request = 3, .prompt = 0, .tokens = 20, .to = kAll}),
                    Op(Kind::kFeed, {.request = 6, .prompt = 0, .tokens = 20, .to = kAll}),
                    Op(Kind::kAnswer), Op(Kind::kPulled, {.form = 3, .to = kAll, .time = 22}),
                    Op(Kind::kTick, {.time = kMinute})}});
}

}  // namespace

std::vector<Seed> ScriptSeeds() {
  const Start roomy{.extents = 3, .extent_pages = 40},
      small{.extents = 3, .extent_pages = 15, .share = 7};
  const Start colliding{.extents = 2, .extent_pages = 30, .collide = 1};
  return {SeedOf("two_engines", false, roomy, TwoEngines()),
          SeedOf("colliding_keys", false, colliding, TwoEngines()),
          SeedOf("scopes", false, roomy, Scopes()),
          SeedOf("shards", false, roomy, Shards()),
          SeedOf("late", false, roomy, Late()),
          SeedOf("waiting", false, roomy, Waiting()),
          SeedOf("crowded", false, small, Crowded()),
          SeedOf("refusals", false, roomy, Refusals()),
          SeedOf("bad_pages", false, roomy, BadPages()),
          SeedOf("fetch", true, roomy, Fetch()),
          SeedOf("fetches_that_fail", true, roomy, FetchesThatFail()),
          SeedOf("grants", true, roomy, Grants()),
          SeedOf("feeds", true, roomy, Feeds()),
          SeedOf("truth_and_lies", true, roomy, TruthAndLies()),
          SeedOf("makers", true, roomy, Makers())};
}

}  // namespace pando::fuzz
