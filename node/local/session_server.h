// The node's side of the local protocol: sockets in, NodeCore steps, frames out.
//
//   accept ─► read (64 KiB a turn) ─► frame ─► message ─► NodeCore::Step ─► answers ─► one frame
//   pidfd fires ─► last words ─► ProcessExited            socket ends ─► SessionClosed
//
// Invariants:
//  1. One message is one step; all answers to one incoming frame go into one NodeFrame (more only
//     if they are long or take long, or bring more descriptors than one message can).
//  2. Whatever one session sends, or does not read, is felt by that session alone: a bad message is
//     answered, a bad frame ends its session with one answer and one log line, a full queue stops
//     the reading of that session, in mid-frame if need be; and whose messages take long, or who
//     dies with much unread, is gone on with in later turns.
//  3. Every session that the core heard of as opened is closed once; every process that attached is
//     reported as gone once, for each of its sessions that the core has not forgotten.
//  4. In each session an extent's memfd is sent once, with or before the first frame that names one
//     of its pages.
//  5. What sessions may leave in memory, half frames and unread answers, is bounded for all of them
//     together.
//
// It decides nothing about claims or pages: that is the core's. Owner thread only.
#ifndef PANDO_NODE_LOCAL_SESSION_SERVER_H_
#define PANDO_NODE_LOCAL_SESSION_SERVER_H_

#include <google/protobuf/arena.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "node/core/limits.h"
#include "node/core/node_core.h"
#include "node/local/acceptor.h"
#include "node/local/event_loop.h"
#include "node/local/listener.h"
#include "node/local/process_watch.h"
#include "node/local/session.h"
#include "radix/base/steps.h"

namespace pando::v1 {
class NodeFrame;
}  // namespace pando::v1

namespace pando::local {

class SessionServer {
 public:
  struct Options {
    BootId boot_id;
    // Sessions are numbered from here on; drawn anew in each life, as NodeCore's claims are.
    SessionId first_session{1};
    // Open, or closed while their process holds something: each takes two descriptors at most.
    uint32_t sessions_max = limits::kSessions;
    uint64_t queue_bytes_max = limits::kQueueBytesPerSession;
    uint64_t all_queues_bytes_max = limits::kQueueBytes;
    uint64_t half_frames_bytes_max = limits::kHalfFrameBytes;
    Nanos turn_max = limits::kTurn;
  };
  using LogSink = std::function<void(const LogLine&)>;

  // `loop`, `core` and (unless null) `steps` outlive the server; it takes the loop's turn end.
  SessionServer(const Options& options, EventLoop* loop, NodeCore* core, Listener listener,
                LogSink log, StepListener* steps = nullptr);
  ~SessionServer();
  SessionServer(const SessionServer&) = delete;
  SessionServer& operator=(const SessionServer&) = delete;

  // Steps the core with an input that comes from no session, and carries the outputs out.
  void Deliver(Input input);
  // From now on pages of `extent` may be named; `fd` stays the caller's and outlives the server.
  void AddExtent(ExtentId extent, int fd);
  // No new sessions from now on; the socket stays until the server ends.
  void StopAccepting();
  // Called after every turn, when the core has done all there is to do.
  void SetAfterTurn(std::function<void()> after_turn) { after_turn_ = std::move(after_turn); }

  // What the core puts out that is not a session's, such as what it says to peers. It must not
  // deliver anything from within.
  void SetOtherOutputs(std::function<void(Output&&)> others) { others_ = std::move(others); }

  size_t sessions() const { return sessions_.size(); }

 private:
  // accepting.cc
  void Accept(UniqueFd socket);
  void SayPaused(int error);
  void Open(UniqueFd socket);
  void RefuseSession(const UniqueFd& socket);

  // reading.cc
  void Handle(Session* session, uint32_t events);
  // Reads once; false: nothing (more) to read.
  bool Read(Session* session);
  void KeepFds(Session* session, bool lost);
  // Handles what was read until `until`; what is left waits for a later turn.
  void HandleFrames(Session* session, Nanos until);
  // False: there is more of it.
  bool HandleFrame(Session* session, std::string_view bytes, Nanos until);
  bool CheckFrame(Session* session, std::string_view bytes);
  void HandleMessage(Session* session, std::string_view bytes);
  // Answers a message that does not reach the core.
  void RefuseMessage(Session* session, uint64_t serial, RefusedOutside::What what, Answer answer);
  void HandleAttach(Session* session, uint64_t serial, Nanos deadline, RequestBody body);
  void ProcessGone(SessionId session) { dying_.push_back(session); }

  // going_on.cc
  // Goes on with those who wait, and with those whose process has gone, for a turn's time.
  void GoOn();
  void GoOnWaiting(Nanos until);
  void GoOnDying(Nanos until);
  // False: all that it said has been handled, as far as that counts.
  bool HearLastWords(Session* session, Nanos until);
  // Keeps the sums of half frames and unread answers; a half frame that is one too many ends.
  void Weigh(Session* session);
  void EndOldestHalfFrame();

  // answering.cc
  void CarryOut(Output output);
  void AddAnswer(Session* session, uint64_t serial, Answer answer);
  void SendAnswers(Session* session);
  void AddAnswerTo(v1::NodeFrame** frame, Session* session, uint64_t serial, const Answer& answer);
  void AddExtentsOf(const Answer& answer, v1::NodeFrame** frame, Session* session);
  void SendFrame(v1::NodeFrame** frame, Session* session);
  v1::NodeFrame* NewFrame();
  void Flush(Session* session);
  void Rest(Session* session, int error);

  // session_server.cc
  void CountRefused(RefusedOutside::What what) { Deliver(RefusedOutside{what}); }
  // Ends a session that broke the protocol: one answer, one log line.
  void Refuse(Session* session, RefusedOutside::What what, Code code, std::string message);
  void End(Session* session);
  void Close(Session* session);
  void UpdateEvents(Session* session);
  void FlushDirty();
  void Sweep();
  Nanos EndTurn();
  Session* Find(SessionId id);
  void Log(LogLine::Level level, std::string event,
           std::vector<std::pair<std::string, std::string>> fields);
  void Reached(std::string_view step) {
    if (steps_ != nullptr) steps_->Reached(step);
  }

  const Options options_;
  EventLoop* const loop_;
  NodeCore* const core_;
  LogSink log_;
  StepListener* const steps_;
  ProcessWatch processes_;
  Acceptor acceptor_;
  std::function<void()> after_turn_;
  std::function<void(Output&&)> others_;

  absl::flat_hash_map<SessionId, std::unique_ptr<Session>> sessions_;
  uint64_t next_session_;
  uint64_t remembered_ = 0;                    // sessions that the core has not forgotten
  std::deque<SessionId> resumable_;            // wait, and may go on
  std::deque<SessionId> dying_;                // their process has gone, and the core is to be told
  uint64_t half_bytes_ = 0, queue_bytes_ = 0;  // of all sessions
  uint64_t last_half_ = 0;                     // Session::half_since
  std::vector<int> extent_fds_;                // by ExtentId; -1: unknown

  // Reused from turn to turn, so that a frame costs no allocation of its own.
  std::vector<char> buffer_;
  std::vector<UniqueFd> fds_;
  std::vector<Output> outputs_;
  std::vector<Session*> dirty_;      // have answers to send
  std::vector<SessionId> to_sweep_;  // closed
  std::vector<int> frame_fds_;       // of the frame that is being made
  size_t frame_messages_bytes_ = 0;
  std::string frame_bytes_;
  std::vector<char> arena_block_;
  google::protobuf::Arena arena_;
  bool arena_used_ = false;  // since its last reset
};

}  // namespace pando::local

#endif  // PANDO_NODE_LOCAL_SESSION_SERVER_H_
