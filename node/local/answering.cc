// SessionServer, what sessions are sent.
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <utility>

#include "node/local/clock.h"
#include "node/local/codec.h"
#include "node/local/frame.h"
#include "node/local/session_server.h"
#include "node/local/steps.h"
#include "pando/v1/client.pb.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

using google::protobuf::Arena;

// Room in a frame for what is not messages: boot id and extents.
constexpr size_t kFrameSlack = 4096;
// Tag and length of one message in its frame.
constexpr size_t kMessageHeaderBytes = 6;
// How long nothing is sent to a session that the system had no room for.
constexpr Nanos kRest = 50'000'000;

// About what an answer will take in a frame.
uint64_t BytesOf(const Answer& answer) {
  constexpr uint64_t kEach = 32;
  uint64_t bytes = kEach + answer.message.size();
  if (const auto* begin = std::get_if<BeginAnswer>(&answer.body)) {
    for (const BeginItem& item : begin->items) {
      bytes += kEach + item.message.size() + item.pages.size() * 8 + item.checksums.size() * 8;
    }
  } else if (const auto* end = std::get_if<EndAnswer>(&answer.body)) {
    bytes += end->codes.size();
  }
  return bytes;
}

}  // namespace

void SessionServer::CarryOut(Output output) {
  if (auto* line = std::get_if<LogLine>(&output)) {
    if (log_) log_(*line);
    return;
  }
  if (auto* send = std::get_if<SendAnswer>(&output)) {
    Session* session = Find(send->session);
    if (session != nullptr) AddAnswer(session, send->serial, std::move(send->answer));
    return;
  }
  if (const auto* gone = std::get_if<SessionForgotten>(&output)) {
    --remembered_;
    processes_.Remove(gone->session);
    return;
  }
  const auto* close = std::get_if<CloseSession>(&output);
  if (close == nullptr) {
    if (others_) others_(std::move(output));
    return;
  }
  Session* session = Find(close->session);
  if (session == nullptr || session->ending) return;
  Log(LogLine::Level::kInfo, "session.ended_by_node",
      {{"session", std::to_string(close->session.value())}, {"why", close->reason}});
  End(session);
}

void SessionServer::AddAnswer(Session* session, uint64_t serial, Answer answer) {
  if (session->closed) return;
  if (session->answers.empty()) dirty_.push_back(session);
  session->answer_bytes += BytesOf(answer);
  session->answers.emplace_back(serial, std::move(answer));
}

v1::NodeFrame* SessionServer::NewFrame() {
  arena_used_ = true;
  auto* frame = Arena::CreateMessage<v1::NodeFrame>(&arena_);
  frame->set_boot_id(options_.boot_id.value());
  frame_fds_.clear();
  frame_messages_bytes_ = 0;
  return frame;
}

void SessionServer::SendAnswers(Session* session) {
  if (session->answers.empty() || session->closed) return;
  v1::NodeFrame* frame = NewFrame();
  for (const auto& [serial, answer] : session->answers) {
    AddAnswerTo(&frame, session, serial, answer);
  }
  session->answers.clear();
  session->answer_bytes = 0;
  SendFrame(&frame, session);
}

void SessionServer::AddAnswerTo(v1::NodeFrame** frame, Session* session, uint64_t serial,
                                const Answer& answer) {
  auto* message = Arena::CreateMessage<v1::NodeMessage>(&arena_);
  EncodeAnswer(serial, answer, message);
  const size_t size = message->ByteSizeLong();
  if (size > limits::kFrameBytes - kFrameSlack) {
    // What it began would be ours to end; so it ends with the session.
    CountRefused(RefusedOutside::What::kMessageAnswerTooLong);
    message->Clear();
    const std::string why = "answer: it would be " + std::to_string(size) +
                            " bytes, more than a frame may have; name fewer claims in a message";
    EncodeAnswer(serial, Answer{Code::kLimit, why, {}}, message);
    Log(LogLine::Level::kWarning, "session.refused",
        {{"session", std::to_string(session->id.value())}, {"why", why}});
    End(session);
  } else if ((*frame)->messages_size() > 0 &&
             frame_messages_bytes_ + size > limits::kFrameBytes - kFrameSlack) {
    SendFrame(frame, session);
  }
  AddExtentsOf(answer, frame, session);
  (*frame)->mutable_messages()->AddAllocated(message);
  frame_messages_bytes_ += size + kMessageHeaderBytes;
}

void SessionServer::AddExtentsOf(const Answer& answer, v1::NodeFrame** frame, Session* session) {
  const auto* begin = std::get_if<BeginAnswer>(&answer.body);
  if (begin == nullptr) return;
  std::vector<bool>& sent = session->extents_sent;
  if (sent.size() < extent_fds_.size()) sent.resize(extent_fds_.size());
  for (const BeginItem& item : begin->items) {
    for (const PageId page : item.pages) {
      const uint32_t extent = ExtentOf(page).value();
      PANDO_CHECK(extent < extent_fds_.size() && extent_fds_[extent] >= 0)
          << "page " << page << " lies in extent " << extent << ", which nobody added";
      if (sent[extent]) continue;
      sent[extent] = true;
      if (frame_fds_.size() == limits::kFdsPerMessage) SendFrame(frame, session);
      frame_fds_.push_back(extent_fds_[extent]);
      (*frame)->add_extents(extent);
    }
  }
}

void SessionServer::SendFrame(v1::NodeFrame** frame, Session* session) {
  v1::NodeFrame* full = std::exchange(*frame, nullptr);
  frame_bytes_.clear();
  const bool fits = AppendFrame(*full, &frame_bytes_);
  PANDO_CHECK(fits) << "a frame of " << full->ByteSizeLong() << " bytes";
  if (!session->deaf) {
    if (!frame_fds_.empty()) Reached(step::kExtentsSent);
    const Io io = session->queue.Push(session->socket.get(), frame_bytes_, frame_fds_);
    if (io == Io::kLater) Rest(session, errno);
    // It may have gone with requests still to be read, so reading ends it, not writing.
    if (io == Io::kEnded) session->deaf = true;
    if (io == Io::kFailed) {
      Log(LogLine::Level::kWarning, "session.send_failed",
          {{"session", std::to_string(session->id.value())}, {"error", std::strerror(errno)}});
      session->deaf = true;
      End(session);
    }
    Reached(step::kAnswersSent);
  }
  *frame = NewFrame();
}

void SessionServer::Flush(Session* session) {
  const Io io = session->queue.Flush(session->socket.get());
  if (io == Io::kLater) Rest(session, errno);
  if (io == Io::kEnded || io == Io::kFailed) session->deaf = true;
  if (session->ending && session->queue.empty() && session->answers.empty()) {
    Close(session);
    return;
  }
  UpdateEvents(session);
}

// Its socket may well be writable meanwhile, so the loop is not asked.
void SessionServer::Rest(Session* session, int error) {
  if (std::exchange(session->resting, true)) return;
  Log(LogLine::Level::kWarning, "session.send_later",
      {{"session", std::to_string(session->id.value())}, {"error", std::strerror(error)}});
  loop_->At(Now() + kRest, [this, id = session->id] {
    Session* rested = Find(id);
    if (rested == nullptr || rested->closed) return;
    rested->resting = false;
    Flush(rested);
  });
}

}  // namespace pando::local
