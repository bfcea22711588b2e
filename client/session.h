// The client's one session with its node: connects, attaches, sends, checks what comes back, and
// starts over when the node is lost.
//
//   kDisconnected ──Open──► kAttaching ──answer──► kAttached ◄──any answer── kAbsent
//        ▲  ▲                   │ │                    │ └──a call timed out──► ▲
//        │  └─── backoff ───────┘ └─ "no" ─► kRefused  │
//        └── holds gone, unmapped ── kDraining ◄───────┴── anything broken, either side
//
// Invariants:
//  1. `pending_` has every message that was sent in this session and not answered.
//  2. `memory_` is set exactly while there is a connection; a lost session's memory is only in its
//     holds, and no connection is made before `old_unmapped_` says that it is gone.
//  3. What the engine gave up (`owed_`, Returns) is told to the node as soon as there is room, or
//     the session ends first.
//
// Threads: as Client, one at a time; holds reach it only through Returns.
#ifndef PANDO_CLIENT_SESSION_H_
#define PANDO_CLIENT_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "client/answers.h"
#include "client/channel.h"
#include "client/client.h"
#include "client/fork_guard.h"
#include "client/frame_writer.h"
#include "client/hold_state.h"
#include "client/pending.h"
#include "client/prompt_check.h"
#include "client/session_memory.h"
#include "client/steps.h"

namespace pando::client {

template <class Result>
using Slot = std::shared_ptr<CallSlot<Result>>;

class Session {
 public:
  Session(Options options, std::unique_ptr<Channel> channel);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  State state() const { return fork_ && fork_->forked() ? State::kForked : state_; }
  const std::string& last_error() const { return last_error_; }
  uint64_t boot_id() const { return boot_id_; }
  uint64_t id() const { return session_; }
  const Counters& counters() const { return counters_; }
  int fd() const;
  bool wants_write() const;

  void Poll();
  void Flush();
  bool Prefault(size_t bytes);
  // Waits for input, for room, or for `until`; also returns when something else is due.
  void Sleep(int64_t until) const;

  Slot<AcquireResult> StartAcquire(uint64_t request, const Prompt& prompt,
                                   uint64_t engine_hit_tokens, int64_t claim_deadline,
                                   int64_t deadline, Intent intent, Account account);
  Slot<AwaitResult> StartAwait(uint64_t ticket, int64_t until, int64_t deadline);
  Slot<ProbeResult> StartProbe(const Prompt& prompt, int64_t deadline);
  Slot<ReserveResult> StartReserve(uint64_t request, const Prompt& prompt,
                                   std::span<const uint32_t> append_tokens, uint32_t from,
                                   uint32_t to, int64_t claim_deadline, int64_t deadline);
  Slot<BeginResult> StartBegin(std::span<const Claim> claims, int64_t deadline);
  Slot<EndResult> StartEnd(Hold hold, int64_t deadline);
  Slot<SettleResult> StartSettle(uint64_t request, const Used& used, int64_t deadline);
  void Abort(std::span<const Claim> claims);

 private:
  // ---- session_calls.cc
  // An engine may never call anything but these: so each makes the progress that its own answer
  // depends on. While all is well there is none to make.
  void Progress();
  bool Full() const;
  // Why nothing can be asked now, when all progress has been made; kOk: it can.
  Objection Unaskable(int64_t deadline);
  Objection UnsendableRelease();
  Objection CheckOpen(uint64_t request) const;
  template <class Result>
  Slot<Result> NewSlot(int64_t deadline);
  template <class Result>
  Slot<Result> Refused(const Objection& objection);
  // Queues a message and expects its answer. False: too much is queued.
  template <class Message>
  bool Queue(const Message& message, uint64_t serial, Pending pending);
  template <class Message, class Result>
  Slot<Result> Ask(const Message& message, uint64_t serial, Pending pending, Slot<Result> slot);
  pb::ClientMessage Head(int64_t deadline);
  void AskBegin(const Slot<BeginResult>& slot, std::vector<uint64_t> claims, BeginResult begun);
  bool QueueEnd(const HoldState& hold, const Slot<EndResult>& slot);
  void QueueOwed();
  bool QueueOwedMessage(std::span<const Return> items);

  // ---- session_answers.cc
  // Each returns what the node did wrong, or nothing.
  std::string OnFrame(std::string_view bytes, int64_t now);
  std::string OnMessage(const pb::NodeMessage& message, int64_t now);
  std::string OnAttached(const pb::NodeMessage& message, int64_t now);
  std::string MapExtents(const pb::NodeFrame& frame);
  void NotOpened(uint64_t request, uint64_t serial);
  template <class AnyCall>
  std::string OnAnswer(const pb::NodeMessage& message, Pending* pending, AnyCall* call,
                       int64_t now);
  // Whether the call goes on, with another message; else `result` is all of it.
  bool GoesOn(BeginCall* call, const Slot<BeginResult>& slot, BeginResult* result);
  template <class AnyCall, class Result>
  bool GoesOn(AnyCall*, const Slot<Result>&, Result*) {
    return false;
  }
  std::string Keep(BeginResult* result);
  template <class Result>
  std::string Keep(Result* result);

  // ---- session.cc
  // True in a fork's child.
  bool Forked();
  void Advance(int64_t now);
  void Connect(int64_t now);
  bool SendAttach(int64_t now, std::string* error);
  bool Send(UniqueFd fd);
  void SendAll(int64_t now);
  void Read(int64_t now);
  void Expire(int64_t now);
  void GoAbsent();
  void Lose(int64_t now, const std::string& error);
  // `passing`: the reason may end by itself, so the next try comes as soon as after a loss.
  void Refuse(int64_t now, const std::string& error, bool passing);
  void End(Code code, const std::string& error);
  void Backoff(int64_t now);
  bool connected() const { return memory_ != nullptr; }

  const Options options_;
  const std::unique_ptr<Channel> channel_;
  const std::shared_ptr<const ForkGuard> fork_;
  Counters counters_;

  State state_ = State::kDisconnected;
  std::string last_error_;
  int64_t retry_at_ = 0;
  int64_t retry_in_;
  int64_t attach_deadline_ = 0;

  // Of the present connection.
  std::shared_ptr<SessionMemory> memory_;
  uint64_t boot_id_ = 0;
  uint64_t session_ = 0;
  FrameWriter writer_;
  PendingCalls pending_;
  int64_t next_deadline_ = INT64_MAX;  // no pending call has an earlier one
  std::unordered_map<uint64_t, std::weak_ptr<HoldState>> holds_;  // begun and not ended, by claim
  std::unordered_map<uint64_t, uint64_t> requests_;  // open ones, and the serial that opened each
  std::vector<Return> owed_;
  uint64_t absence_serial_ = 0;  // of the message that asks whether the node is back

  uint64_t last_serial_ = 0;  // never used twice, in no session

  // Of the one before.
  uint64_t old_session_;
  std::shared_ptr<const std::atomic<bool>> old_unmapped_;
};

}  // namespace pando::client

#endif  // PANDO_CLIENT_SESSION_H_
