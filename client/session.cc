#include "client/session.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "client/limits.h"

namespace pando::client {
namespace {

// Of attach's time, what the node has to execute it. The rest is for the answer: an attach that was
// executed and not heard of would keep the replica's place.
constexpr int64_t kExecuteShare = 2;
constexpr int64_t kDrainCheckNanos = 1'000'000;  // between looks at what other threads still hold

pb::Role ToRole(Role role) {
  switch (role) {
    case Role::kScheduler:
      return pb::SCHEDULER;
    case Role::kWorker:
      return pb::WORKER;
    case Role::kBoth:
      return pb::BOTH;
  }
  return pb::ROLE_UNSPECIFIED;
}

void FillAttach(const Options& options, uint64_t replaces, pb::Attach* attach) {
  attach->set_protocol_min(limits::kProtocolVersion);
  attach->set_protocol_max(limits::kProtocolVersion);
  attach->set_checksum_formula(limits::kChecksumFormula);
  attach->set_replica_key(options.replica_key);
  attach->set_role(ToRole(options.role));
  attach->set_shard(options.shard);
  attach->set_world_size(options.world_size);
  attach->set_block_tokens(options.block_tokens);
  attach->set_page_bytes(options.page_bytes);
  for (const auto& [name, value] : options.fields) {
    pb::Field* field = attach->add_fields();
    field->set_name(name);
    field->set_value(value);
  }
  attach->set_prefill_tokens_per_s(options.prefill_tokens_per_s);
  attach->set_replaces(replaces);
}

}  // namespace

Session::Session(Options options, std::unique_ptr<Channel> channel)
    : options_(std::move(options)),
      channel_(std::move(channel)),
      fork_(ForkGuard::Create()),
      retry_in_(options_.retry_min_ns),
      old_session_(options_.replaces) {
  const Objection objection = CheckOptions(options_);
  if (objection.ok() && fork_) return;
  state_ = State::kRefused;
  last_error_ =
      fork_ ? objection.message : "the kernel cannot wipe memory in children (Linux 4.14)";
  retry_at_ = INT64_MAX;
}

Session::~Session() {
  if (Forked() || !connected()) return;
  SendAll(NowNanos());
  if (connected()) End(Code::kLost, "the client was closed");
}

int Session::fd() const {
  return state() == State::kForked ? -1 : channel_->fd();
}

bool Session::wants_write() const {
  return fd() >= 0 && channel_->queued_bytes() != 0;
}

void Session::Poll() {
  if (Forked()) return;
  const int64_t now = NowNanos();
  if (state_ == State::kAttaching) Read(now);  // what has come is in time, however late one looks
  Advance(now);
  if (connected()) SendAll(now);
  if (connected()) Read(now);
  if (connected()) Expire(now);
  if (connected()) SendAll(now);  // what late answers brought
}

void Session::Flush() {
  if (state_ != State::kAttached) return Poll();
  if (!Forked()) SendAll(NowNanos());
}

bool Session::Prefault(size_t bytes) {
  return !Forked() && connected() && memory_->Prefault(bytes);
}

void Session::Sleep(int64_t until) const {
  const int64_t now = NowNanos();
  if (state_ == State::kAttaching) until = std::min(until, attach_deadline_);
  if (state_ == State::kDraining) until = std::min(until, now + kDrainCheckNanos);
  if (!connected() && state_ != State::kDraining) until = std::min(until, retry_at_);
  // The answer mostly comes within moments. (Twice: the kernel rounds that time up.)
  if (connected() && until - now > 2 * kBrieflyNanos && channel_->WaitBriefly()) return;
  const int64_t wait = std::max<int64_t>(until - NowNanos(), 0);
  const timespec timeout = {wait / 1'000'000'000, wait % 1'000'000'000};
  pollfd input = {fd(), static_cast<short>(wants_write() ? POLLIN | POLLOUT : POLLIN), 0};
  ppoll(&input, input.fd >= 0 ? 1 : 0, &timeout, nullptr);
}

// In a child, all ends at once and quietly: only its copy of the socket is closed.
bool Session::Forked() {
  if (!fork_ || !fork_->forked()) return false;
  if (state_ == State::kForked) return true;
  state_ = State::kForked;
  last_error_ = "this process is a fork's child: it needs a client of its own";
  for (auto& [serial, pending] : std::exchange(pending_, {})) {
    Fail(&pending, Code::kUnavailable, last_error_);
  }
  holds_.clear();
  memory_.reset();
  channel_->Close();
  return true;
}

// What time and other threads have made possible.
void Session::Advance(int64_t now) {
  if (state_ == State::kAttaching && now >= attach_deadline_) {
    return Lose(now, "the node did not answer attach in time");
  }
  if (connected()) return;
  if (old_unmapped_) {
    if (!old_unmapped_->load(std::memory_order_acquire)) return;
    old_unmapped_ = nullptr;
    Reached(options_.steps, Step::kUnmapped);
    if (state_ == State::kDraining) state_ = State::kDisconnected;
  }
  if (now >= retry_at_) Connect(now);
}

void Session::Connect(int64_t now) {
  std::string error;
  if (!channel_->Open(&error)) {
    last_error_ = error;
    state_ = State::kDisconnected;
    return Backoff(now);
  }
  memory_ = std::make_shared<SessionMemory>(fork_);
  state_ = State::kAttaching;
  attach_deadline_ = now + options_.attach_timeout_ns;
  if (!SendAttach(now, &error)) Lose(now, error);
}

bool Session::SendAttach(int64_t now, std::string* error) {
  UniqueFd self(static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0)));
  if (!self.valid()) {
    *error = std::string("no pidfd of this process: ") + strerror(errno);
    return false;
  }
  pb::ClientMessage message;
  message.set_serial(++last_serial_);
  message.set_deadline_ns(static_cast<uint64_t>(now + options_.attach_timeout_ns / kExecuteShare));
  FillAttach(options_, old_session_, message.mutable_attach());
  writer_.Clear();
  writer_.Add(message);
  pending_.emplace(message.serial(), Pending{INT64_MAX, true, AttachCall{}});
  if (!Send(std::move(self))) {
    *error = "the node closed the connection";
    return false;
  }
  Reached(options_.steps, Step::kAttachSent);
  return true;
}

// False: the connection has ended, and nothing more was done about it.
bool Session::Send(UniqueFd fd) {
  if (writer_.empty()) return channel_->Flush();
  const bool sent = channel_->Send(writer_.Finish(), std::move(fd));
  writer_.Clear();
  if (sent) Reached(options_.steps, Step::kFrameSent);
  return sent;
}

void Session::SendAll(int64_t now) {
  QueueOwed();
  if (connected() && (!channel_->Flush() || !Send(UniqueFd()))) {
    Lose(now, "the node closed the connection");
  }
}

void Session::Read(int64_t now) {
  for (int i = 0; i < limits::kFramesPerPoll && connected(); ++i) {
    std::string_view frame;
    std::string error;
    switch (channel_->Receive(&frame, &error)) {
      case Channel::Received::kNothing:
        return;
      case Channel::Received::kEnded:
        return Lose(now, error);
      case Channel::Received::kFrame:
        error = OnFrame(frame, now);
        break;
    }
    if (!error.empty()) Lose(now, error);
  }
}

void Session::Expire(int64_t now) {
  if (now < next_deadline_) return;
  bool expired = false;
  next_deadline_ = INT64_MAX;
  for (auto& [serial, pending] : pending_) {
    if (!pending.waited) continue;
    if (pending.deadline <= now) {
      if (Fail(&pending, Code::kLost, "no answer before the deadline")) ++counters_.calls_lost;
      expired = true;
    } else {
      next_deadline_ = std::min(next_deadline_, pending.deadline);
    }
  }
  if (expired && state_ == State::kAttached) GoAbsent();
}

// One message without effect is kept outstanding: its answer, or any other, says that the node is
// back.
void Session::GoAbsent() {
  state_ = State::kAbsent;
  last_error_ = "the node did not answer in time";
  if (pending_.contains(absence_serial_)) return;
  pb::ClientMessage message = Head(0);
  // Of those messages that a session of its role may send.
  if (options_.role == Role::kWorker) {
    message.mutable_end();
  } else {
    message.mutable_abort();
  }
  if (Queue(message, message.serial(), Pending{INT64_MAX, false, AbortCall{}})) {
    absence_serial_ = message.serial();
  }
}

void Session::Lose(int64_t now, const std::string& error) {
  if (session_ != 0) ++counters_.sessions_lost;
  End(Code::kLost, error);
  state_ = old_unmapped_->load(std::memory_order_acquire) ? State::kDisconnected : State::kDraining;
  Backoff(now);
  Reached(options_.steps, Step::kLost);
}

void Session::Refuse(int64_t now, const std::string& error, bool passing) {
  End(Code::kUnavailable, error);
  state_ = State::kRefused;
  if (passing) return Backoff(now);
  retry_at_ = now + options_.retry_max_ns;
}

// All that belongs to the connection ends; what holds still touch stays mapped until they are gone.
void Session::End(Code code, const std::string& error) {
  for (auto& [claim, weak] : std::exchange(holds_, {})) {
    if (const auto hold = weak.lock()) hold->control.stop.store(true, std::memory_order_release);
  }
  for (auto& [serial, pending] : std::exchange(pending_, {})) {
    if (Fail(&pending, code, error)) ++counters_.calls_lost;
  }
  next_deadline_ = INT64_MAX;
  requests_.clear();
  owed_.clear();
  writer_.Clear();
  absence_serial_ = 0;
  if (session_ != 0) old_session_ = std::exchange(session_, 0);
  boot_id_ = 0;
  old_unmapped_ = memory_->unmapped();
  memory_.reset();
  channel_->Close();
  last_error_ = error;
}

void Session::Backoff(int64_t now) {
  retry_at_ = now + retry_in_;
  retry_in_ = std::min(2 * retry_in_, options_.retry_max_ns);
}

}  // namespace pando::client
