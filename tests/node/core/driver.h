// CoreDriver: a node's core with no node around it. Sessions are structs, time is a number, and
// every output is kept, so that a test reads like the conversation it is about:
//
//   CoreDriver node;
//   Engine a = node.StartEngine("a", /*shards=*/2);
//   node.Store(a, prompt);
//   AcquireAnswer hit = node.Acquire(a, RequestId(1), prompt);
#ifndef PANDO_TESTS_NODE_CORE_DRIVER_H_
#define PANDO_TESTS_NODE_CORE_DRIVER_H_

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "node/core/limits.h"
#include "node/core/node_core.h"
#include "node/core/steps.h"

namespace pando::testing {

inline constexpr uint32_t kBlock = 16;  // tokens of a block, unless a test says otherwise
inline constexpr Nanos kSecond = 1'000'000'000;

// `blocks` blocks of tokens that no other seed gives.
std::vector<uint32_t> Tokens(uint32_t seed, uint64_t count);
PromptData PublicPrompt(std::vector<uint32_t> tokens);
PromptData BlocksPrompt(uint32_t seed, uint32_t blocks, uint32_t more_tokens = 1);

// The sessions of one replica. With one shard in role both they are all the same.
struct Engine {
  std::string key;
  SessionId scheduler;
  std::vector<SessionId> workers;
  Bytes page_bytes;
};

struct EngineOptions {
  uint32_t shards = 1;
  Bytes page_bytes{4096};
  uint32_t block_tokens = kBlock;
  uint64_t prefill_tokens_per_s = 0;
  std::vector<std::pair<std::string, std::string>> fields{{"model", "m"}, {"dtype", "bf16"}};
};

class CoreDriver : public StepListener {
 public:
  struct Options {
    uint32_t extents = 1;
    Bytes slab_bytes = kExtentBytes;
    uint32_t extent_pages = 0;  // as PrefixCache::Options::extent_pages_max
    ClaimId first_claim{1};
  };
  CoreDriver() : CoreDriver(Options{}) {}
  explicit CoreDriver(const Options& options);

  // The core, its clock, and what it has put out since Clear.
  NodeCore& core() { return core_; }
  Nanos now = kSecond;
  std::vector<LogLine> logs;
  std::vector<CloseSession> closes;
  std::vector<SessionId> forgotten;
  std::map<uint64_t, Answer> awaited;  // answers that came by themselves, by serial
  std::map<std::string, uint64_t, std::less<>> steps;
  std::function<void(Output)> elsewhere;  // takes what is for peers and for the transfer engine

  void Input(pando::Input input);
  void Advance(Nanos by);
  CoreStatus status() const { return core_.status(); }
  // Lines of one event.
  std::vector<LogLine> Logged(std::string_view event) const;

  SessionId Open();
  void Close(SessionId session) { Input(SessionClosed{session}); }
  void Exit(SessionId session) { Input(ProcessExited{session}); }
  // Its process is gone, socket and all.
  void Kill(SessionId session);
  Answer Send(SessionId session, RequestBody body, Nanos deadline = 0);

  static AttachRequest AttachAs(const std::string& key, Role role, uint32_t shard,
                                const EngineOptions& options = {});
  Engine StartEngine(const std::string& key, const EngineOptions& options);
  Engine StartEngine(const std::string& key, uint32_t shards = 1);
  void KillEngine(const Engine& engine);

  // Each sends one message, expects it to be served, and returns its answer.
  AcquireAnswer Acquire(const Engine& engine, RequestId request, PromptData prompt,
                        Nanos claim_deadline = 0, bool compute = false);
  ProbeAnswer Probe(const Engine& engine, PromptData prompt);
  ReserveAnswer Reserve(const Engine& engine, PromptData prompt, Nanos claim_deadline = 0);
  BeginItem Begin(SessionId worker, ClaimId claim);
  Code End(SessionId worker, const EndItem& item);
  void Settle(const Engine& engine, const SettleRequest& settle);

  // Sends an await and returns its serial; the answer comes to `awaited`, in this step or another.
  uint64_t Await(const Engine& engine, uint64_t ticket, Nanos until);

  // A whole store of all full blocks by all shards; returns how many blocks were stored.
  uint32_t Store(const Engine& engine, PromptData prompt);
  // Acquire, load by all shards, settle; returns the blocks that were hit.
  uint32_t LoadAndSettle(const Engine& engine, RequestId request, PromptData prompt);

  // No claim, hold, request, quarantined page or pin is left, and every recount agrees.
  void ExpectBase();
  void ExpectSound();

  void Reached(std::string_view step) override { ++steps[std::string(step)]; }

 private:
  void Keep(Output output);

  NodeCore core_;
  uint64_t last_session_ = 0;
  uint64_t last_serial_ = 0;
};

// The End of a store: one checksum for each page that Begin gave.
EndItem StoreEnd(const BeginItem& begun);
EndItem LoadEnd(ClaimId claim, std::vector<uint32_t> bad_pages = {});

template <class Body>
Body BodyOf(const Answer& answer) {
  EXPECT_EQ(answer.code, Code::kOk) << answer.message;
  const Body* body = std::get_if<Body>(&answer.body);
  EXPECT_NE(body, nullptr);
  return body == nullptr ? Body{} : *body;
}

}  // namespace pando::testing

#endif  // PANDO_TESTS_NODE_CORE_DRIVER_H_
