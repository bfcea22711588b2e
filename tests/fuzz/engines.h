// The engines of a fuzzed script: eight sessions and what they were given. They write into every
// page what its block must hold, and compare what they read. One thread.
//
// A session's slot is who % 8. Claims, tickets and requests may be any engine's: what is not one's
// own must be refused.
#ifndef PANDO_TESTS_FUZZ_ENGINES_H_
#define PANDO_TESTS_FUZZ_ENGINES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "node/core/messages.h"
#include "node/core/spaces.h"
#include "tests/fuzz/core_watch.h"
#include "tests/fuzz/script.h"

namespace pando::fuzz {

class Engines {
 public:
  explicit Engines(CoreWatch* watch) : watch_(watch) {}

  void Do(const Operation& operation);
  void Take(Output& output);
  // All that can still come to an end does; every await of an open session must have been answered.
  void Leave();

 private:
  struct Slot {
    SessionId id;  // 0: free
    bool open = false, exited = false, attached = false, displaced = false;
    std::string replica;
    Role role = Role::kBoth;
    uint32_t shard = 0;
  };
  struct Claim {
    ClaimId id;
    std::string replica;
    bool store = false;
    uint32_t from = 0, to = 0;
    PromptData prompt;
  };
  struct Ticket {
    uint64_t id = 0;
    RequestId request;
  };
  struct Request {
    PromptData prompt;
    bool stopped = false;  // it takes no more tokens
  };
  struct Hold {
    sim::PageMemory::Accessor accessor = 0;
    bool store = false;
    std::vector<PageId> pages;
    std::vector<sim::Stamp> stamps;  // parallel: what they hold
  };

  std::optional<Answer> Send(const Operation& operation, RequestBody body);
  void Open(Slot* slot);
  void Attach(const Operation& operation);
  void Attached(Slot* slot, const AttachRequest& attach);
  void Acquire(const Operation& operation);
  void Await(const Operation& operation);
  void Reserve(const Operation& operation);
  void Reserved(const Slot& slot, const ReserveRequest& reserve, const Answer& answer);
  void Begin(const Operation& operation);
  void Begun(const Slot& slot, const BeginItem& item);
  void End(const Operation& operation);
  EndItem EndOf(const Operation& operation, const Slot& slot, ClaimId claim) const;
  void Settle(const Operation& operation);
  void Close(Slot* slot);
  void Exit(Slot* slot);
  void LetGo(SessionId session);
  void Verify(const Hold& hold);

  Slot& SlotOf(const Operation& operation) { return slots_[operation.who % slots_.size()]; }
  ClaimId ClaimOf(const Operation& operation, uint32_t further) const;
  static RequestId RequestOf(const Operation& operation) {
    return RequestId(operation.request % 6);
  }

  CoreWatch* watch_;
  std::array<Slot, 8> slots_;
  std::map<std::string, SpaceDescription> replicas_;  // by key: what its sessions said
  std::vector<Claim> claims_;
  std::vector<Ticket> tickets_;
  std::map<std::pair<std::string, RequestId>, Request> requests_;
  std::map<std::pair<SessionId, ClaimId>, Hold> holds_;
  std::map<uint64_t, SessionId> unanswered_;  // by serial
  std::map<uint64_t, Answer> answers_;        // come and not looked at, by serial
  std::map<uint64_t, Ticket> awaits_;         // unanswered, by serial
  uint64_t last_session_ = 0, last_serial_ = 0;
};

}  // namespace pando::fuzz

#endif  // PANDO_TESTS_FUZZ_ENGINES_H_
