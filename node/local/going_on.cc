// SessionServer, what takes more than a turn: long frames, last words, and memory that is short.
#include <string>
#include <utility>

#include "node/local/clock.h"
#include "node/local/session_server.h"
#include "node/local/steps.h"

namespace pando::local {
namespace {

// What a dead process had sent lies in its socket; this many reads are more than a socket holds.
constexpr int kLastReads = 64;

}  // namespace

void SessionServer::GoOn() {
  if (resumable_.empty() && dying_.empty()) return;
  const Nanos until = Now() + options_.turn_max;
  GoOnWaiting(until);
  GoOnDying(until);
  FlushDirty();
}

// One after the other, each once a turn, and one in any case.
void SessionServer::GoOnWaiting(Nanos until) {
  for (size_t left = resumable_.size(); left > 0; --left) {
    Session* session = Find(resumable_.front());
    resumable_.pop_front();
    if (session == nullptr) continue;
    session->resumable = false;
    if (session->closed || !session->reading) continue;
    HandleFrames(session, until);
    if (Now() >= until) return;
  }
}

void SessionServer::GoOnDying(Nanos until) {
  while (!dying_.empty()) {
    const SessionId id = dying_.front();
    if (Session* session = Find(id); session == nullptr || !HearLastWords(session, until)) {
      dying_.pop_front();
      Reached(step::kProcessExited);
      Deliver(ProcessExited{id});
    }
    if (Now() >= until) return;
  }
}

// What it had sent before it died counts: an End among it commits a store.
bool SessionServer::HearLastWords(Session* session, Nanos until) {
  if (session->closed || session->ending || !session->reading) return false;
  if (session->waiting) {
    HandleFrames(session, until);
    return true;
  }
  return ++session->last_reads <= kLastReads && Read(session);
}

void SessionServer::Weigh(Session* session) {
  // What waits for us is not for want of its rest.
  const uint64_t half = session->waiting ? 0 : session->reader.pending();
  half_bytes_ += half - session->half_bytes;
  if (session->half_bytes == 0) session->half_since = ++last_half_;
  session->half_bytes = half;
  queue_bytes_ += session->queue.bytes() - session->queue_bytes;
  session->queue_bytes = session->queue.bytes();
  if (half_bytes_ > options_.half_frames_bytes_max) EndOldestHalfFrame();
}

void SessionServer::EndOldestHalfFrame() {
  Session* oldest = nullptr;
  for (const auto& [id, session] : sessions_) {
    if (session->half_bytes <= limits::kReadBytesPerTurn) continue;  // as small as that, it may be
    if (oldest == nullptr || session->half_since < oldest->half_since) oldest = session.get();
  }
  if (oldest == nullptr) return;
  const std::string found = std::to_string(oldest->half_bytes);
  oldest->reader = {};
  half_bytes_ -= std::exchange(oldest->half_bytes, 0);
  Refuse(oldest, RefusedOutside::What::kFrameCutShort, Code::kLimit,
         "frame: found " + found +
             " bytes of one whose rest has not come, and the node has no "
             "memory for more of them; send frames whole");
}

}  // namespace pando::local
