#include "node/local/session_server.h"

#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "node/local/clock.h"
#include "node/local/steps.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

// How long a session that ends may take to read its last answers.
constexpr Nanos kLinger = 1'000'000'000;
constexpr size_t kArenaBlockBytes = 64 << 10;

google::protobuf::ArenaOptions ArenaIn(std::vector<char>* block) {
  google::protobuf::ArenaOptions options;
  options.initial_block = block->data();
  options.initial_block_size = block->size();
  return options;
}

}  // namespace

SessionServer::SessionServer(const Options& options, EventLoop* loop, NodeCore* core,
                             Listener listener, LogSink log, StepListener* steps)
    : options_(options),
      loop_(loop),
      core_(core),
      log_(std::move(log)),
      steps_(steps),
      processes_(loop, [this](SessionId session) { ProcessGone(session); }),
      acceptor_(
          loop, std::move(listener), [this](UniqueFd socket) { Accept(std::move(socket)); },
          [this](int error) { SayPaused(error); }),
      next_session_(options.first_session.value()),
      buffer_(limits::kReadBytesPerTurn),
      arena_block_(kArenaBlockBytes),
      arena_(ArenaIn(&arena_block_)) {
  loop_->SetTurnEnd([this] { return EndTurn(); });
}

SessionServer::~SessionServer() {
  loop_->SetTurnEnd({});
  StopAccepting();
  for (const auto& [id, session] : sessions_) {
    if (!session->closed) loop_->Unwatch(session->watch, session->socket.get());
  }
}

void SessionServer::AddExtent(ExtentId extent, int fd) {
  if (extent.value() >= extent_fds_.size()) extent_fds_.resize(extent.value() + 1, -1);
  extent_fds_[extent.value()] = fd;
}

void SessionServer::StopAccepting() {
  acceptor_.Stop();
}

void SessionServer::Deliver(Input input) {
  outputs_.clear();
  core_->Step(Now(), std::move(input), &outputs_);
  for (Output& output : outputs_) CarryOut(std::move(output));
}

Session* SessionServer::Find(SessionId id) {
  const auto found = sessions_.find(id);
  return found == sessions_.end() ? nullptr : found->second.get();
}

void SessionServer::Refuse(Session* session, RefusedOutside::What what, Code code,
                           std::string message) {
  CountRefused(what);
  Log(LogLine::Level::kWarning, "session.refused",
      {{"session", std::to_string(session->id.value())}, {"why", message}});
  AddAnswer(session, 0, Answer{code, std::move(message), {}});
  End(session);
}

void SessionServer::End(Session* session) {
  if (session->ending || session->closed) return;
  session->ending = true;
  if (std::find(dirty_.begin(), dirty_.end(), session) == dirty_.end()) dirty_.push_back(session);
  loop_->At(Now() + kLinger, [this, id = session->id] {
    if (Session* late = Find(id); late != nullptr) Close(late);
  });
}

void SessionServer::Close(Session* session) {
  if (session->closed) return;
  session->closed = true;
  session->ending = true;
  loop_->Unwatch(session->watch, session->socket.get());
  session->queue.clear();
  session->answers.clear();
  session->reader = {};
  Weigh(session);
  to_sweep_.push_back(session->id);
}

void SessionServer::UpdateEvents(Session* session) {
  if (session->closed) return;
  Weigh(session);
  const bool is_short = queue_bytes_ > options_.all_queues_bytes_max;
  const uint64_t most = is_short ? std::min(limits::kQueueBytesWhenShort, options_.queue_bytes_max)
                                 : options_.queue_bytes_max;
  // It is read again only when half of its queue has gone, lest it flips with every frame.
  session->reading = session->queue.bytes() <= (session->reading ? most : most / 2);
  if (session->reading && session->waiting && !std::exchange(session->resumable, true)) {
    resumable_.push_back(session->id);
  }
  uint32_t events = 0;
  if (session->reading && !session->waiting && !session->ending) events |= EPOLLIN;
  if (!session->queue.empty() && !session->resting) events |= EPOLLOUT;
  if (events == session->events) return;
  session->events = events;
  loop_->Rewatch(session->watch, session->socket.get(), events);
}

void SessionServer::FlushDirty() {
  // By index: what a session is sent may make another one dirty, never more than once each.
  for (size_t i = 0; i < dirty_.size(); ++i) {
    Session* session = dirty_[i];
    SendAnswers(session);
    if (session->ending && session->queue.empty()) Close(session);
    UpdateEvents(session);
  }
  dirty_.clear();
  if (std::exchange(arena_used_, false)) arena_.Reset();
}

void SessionServer::Sweep() {
  // By index: closing one session may make the core close others.
  for (size_t i = 0; i < to_sweep_.size(); ++i) {
    const SessionId id = to_sweep_[i];
    sessions_.erase(id);
    Reached(step::kSessionClosed);
    Log(LogLine::Level::kInfo, "session.closed", {{"session", std::to_string(id.value())}});
    Deliver(SessionClosed{id});
    FlushDirty();
  }
  to_sweep_.clear();
}

Nanos SessionServer::EndTurn() {
  if (core_->next_deadline() <= Now()) Deliver(Tick{});
  FlushDirty();
  GoOn();
  Sweep();
  if (after_turn_) after_turn_();
  return resumable_.empty() && dying_.empty() ? core_->next_deadline() : Now();
}

void SessionServer::Log(LogLine::Level level, std::string event,
                        std::vector<std::pair<std::string, std::string>> fields) {
  if (log_) log_(LogLine{level, std::move(event), std::move(fields)});
}

}  // namespace pando::local
