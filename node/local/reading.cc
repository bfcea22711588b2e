// SessionServer, what sessions send.
#include <sys/epoll.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "node/local/clock.h"
#include "node/local/codec.h"
#include "node/local/frame_form.h"
#include "node/local/session_server.h"
#include "node/local/socket_io.h"
#include "node/local/steps.h"
#include "pando/v1/client.pb.h"

namespace pando::local {
namespace {

using google::protobuf::Arena;
using What = RefusedOutside::What;

// So many bytes of answers are encoded and sent before more are made.
constexpr uint64_t kAnswerBytesAtOnce = 1 << 20;

Answer WrongAttachFds(uint32_t found) {
  return {Code::kInvalid,
          "attach: found " + std::to_string(found) +
              " file descriptors; allowed is exactly one, the sender's own pidfd, with the first "
              "byte of the frame",
          {}};
}

Answer NoPidfd() {
  return {Code::kInvalid,
          "attach: found a file descriptor that is no pidfd; send the sender's own (pidfd_open)",
          {}};
}

// Its pages would be freed while it lives, or never.
Answer WrongProcess(int found, pid_t peer) {
  return {Code::kInvalid,
          "attach: found a pidfd of process " + std::to_string(found) +
              "; allowed is only that of " + std::to_string(peer) +
              ", which connected; send the sender's own, over a connection " +
              "that it made itself",
          {}};
}

Answer NoRoomForFds(int error) {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  return {Code::kUnavailable,
          "attach: the node has no room for another file descriptor (" +
              std::string(std::strerror(error)) + "; its limit is " +
              std::to_string(limit.rlim_cur) + "); try again later, or raise the node's limit",
          {}};
}

// What came with an attach must be one pidfd, of the process that connected: `*pid`.
std::optional<Answer> CheckPidfd(const UniqueFd& pidfd, uint32_t found, bool lost, pid_t peer,
                                 int* pid) {
  if (found == 0 && lost) return NoRoomForFds(EMFILE);
  if (found != 1) return WrongAttachFds(found);
  const NamedProcess named = PidOf(pidfd.get());
  if (named.error != 0) return NoRoomForFds(named.error);
  if (!named.pid) return NoPidfd();
  if (*named.pid != peer) return WrongProcess(*named.pid, peer);
  *pid = *named.pid;
  return std::nullopt;
}

}  // namespace

void SessionServer::Handle(Session* session, uint32_t events) {
  if (session->closed) return;
  if ((events & EPOLLOUT) != 0) Flush(session);
  if (session->closed) return;
  if (session->reading && !session->ending) {
    // One that waits is gone on with at the end of this turn.
    if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) != 0 && !session->waiting) Read(session);
  } else if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
    Close(session);  // nobody is there to read the answers, and nothing more is wanted of it
  }
}

bool SessionServer::Read(Session* session) {
  fds_.clear();
  const Received received = ReceiveOnce(session->socket.get(), buffer_, &fds_);
  if (!fds_.empty() || received.fds_lost) KeepFds(session, received.fds_lost);
  if (received.io == Io::kAgain) return false;
  if (received.io != Io::kDone) {
    if (session->reader.pending() > 0) CountRefused(What::kFrameCutShort);
    Close(session);
    return false;
  }
  session->reader.Feed({buffer_.data(), received.bytes});
  HandleFrames(session, Now() + options_.turn_max);
  return !session->ending;
}

void SessionServer::HandleFrames(Session* session, Nanos until) {
  session->waiting = false;
  std::string_view frame;
  while (!session->ending && !session->closed) {
    const FrameReader::Result next = session->reader.Next(&frame);
    if (next == FrameReader::Result::kNeedMore) break;
    if (next == FrameReader::Result::kTooLong) {
      Refuse(session, What::kFrameTooLong, Code::kLimit,
             "frame: found a length of " + std::to_string(session->reader.announced()) +
                 " bytes; at most " + std::to_string(limits::kFrameBytes) +
                 " are allowed; split it");
      break;
    }
    const bool whole = HandleFrame(session, frame, until);
    FlushDirty();
    const bool stop = Now() >= until || !session->reading;
    if (!whole || stop) session->reader.Pause(/*again=*/!whole);
    session->waiting = stop && session->reader.pending() > 0;
    if (stop) break;
  }
  FlushDirty();
  UpdateEvents(session);
}

void SessionServer::KeepFds(Session* session, bool lost) {
  if (!session->attached) {
    session->attach_fds_lost |= lost;
    session->attach_fds += static_cast<uint32_t>(fds_.size());
    if (!fds_.empty()) session->attach_fd = std::move(fds_.back());
  }
  fds_.clear();  // nobody asked for the others
}

bool SessionServer::HandleFrame(Session* session, std::string_view bytes, Nanos until) {
  if (session->frame_at == 0 && !CheckFrame(session, bytes)) return true;
  while (const auto message = NextMessage(bytes, &session->frame_at)) {
    HandleMessage(session, *message);
    if (session->ending) break;
    const bool much = session->answer_bytes >= kAnswerBytesAtOnce;
    if (session->frame_at < bytes.size() && (much || Now() >= until)) return false;
  }
  session->frame_at = 0;
  return true;
}

// Ends the session if it is none.
bool SessionServer::CheckFrame(Session* session, std::string_view bytes) {
  const FrameForm form = CheckForm(bytes);
  if (form == FrameForm::kGood) return true;
  const std::string found = "frame: found " + std::to_string(bytes.size()) + " bytes ";
  switch (form) {
    case FrameForm::kGood:
      break;
    case FrameForm::kMalformed:
      Refuse(session, What::kFrameMalformed, Code::kInvalid, found + "that are no ClientFrame");
      break;
    case FrameForm::kTooManyMessages:
      Refuse(session, What::kFrameTooManyMessages, Code::kLimit,
             found + "of more than " + std::to_string(limits::kMessagesPerFrame) +
                 " messages, the most that are allowed; split it");
      break;
    case FrameForm::kTooManyFields:
      Refuse(session, What::kFrameTooManyMessages, Code::kLimit,
             found + "of more than " + std::to_string(limits::kFieldsPerFrame) +
                 " fields, the most that are allowed; split it");
      break;
  }
  return false;
}

void SessionServer::HandleMessage(Session* session, std::string_view bytes) {
  arena_used_ = true;
  auto& message = *Arena::CreateMessage<v1::ClientMessage>(&arena_);
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    Refuse(session, What::kFrameMalformed, Code::kInvalid,
           "frame: found " + std::to_string(bytes.size()) + " bytes that are no ClientMessage");
    return;
  }
  const std::optional<Nanos> deadline = DecodeDeadline(message.deadline_ns());
  if (!deadline) {
    RefuseMessage(session, message.serial(), What::kMessageMalformed,
                  {Code::kInvalid,
                   "deadline_ns: found " + std::to_string(message.deadline_ns()) +
                       "; CLOCK_MONOTONIC nanoseconds are below 2^63, 0 is none",
                   {}});
    return;
  }
  RequestBody body;
  if (std::optional<Answer> refusal = DecodeRequest(message, &body)) {
    RefuseMessage(session, message.serial(), What::kMessageMalformed, *std::move(refusal));
    return;
  }
  if (std::holds_alternative<AttachRequest>(body)) {
    HandleAttach(session, message.serial(), *deadline, std::move(body));
    return;
  }
  Deliver(SessionRequest{session->id, message.serial(), *deadline, std::move(body)});
}

void SessionServer::RefuseMessage(Session* session, uint64_t serial, What what, Answer answer) {
  CountRefused(what);
  AddAnswer(session, serial, std::move(answer));
}

void SessionServer::HandleAttach(Session* session, uint64_t serial, Nanos deadline,
                                 RequestBody body) {
  UniqueFd pidfd = std::move(session->attach_fd);
  const uint32_t found = std::exchange(session->attach_fds, 0);
  const bool lost = std::exchange(session->attach_fds_lost, false);
  int pid = 0;
  uint64_t process = 0;
  if (!session->attached) {
    if (std::optional<Answer> wrong = CheckPidfd(pidfd, found, lost, session->peer_pid, &pid)) {
      const bool full = wrong->code == Code::kUnavailable;
      RefuseMessage(session, serial, full ? What::kMessageNoDescriptor : What::kMessageWrongPidfd,
                    *std::move(wrong));
      return;
    }
    process = processes_.NumberOf(pid);
    Reached(step::kAttachFdsReceived);
  }
  auto& attach = std::get<AttachRequest>(body);
  attach.has_pidfd = true;
  attach.process = process;
  const size_t before = session->answers.size();
  Deliver(SessionRequest{session->id, serial, deadline, std::move(body)});
  const bool accepted = session->answers.size() > before &&
                        std::holds_alternative<AttachAnswer>(session->answers.back().second.body);
  if (!accepted || session->attached) return;
  session->attached = true;
  if (!processes_.Add(session->id, std::move(pidfd), pid, process)) {
    // Without a life line it may hold nothing; and so far it does not.
    Refuse(session, What::kMessageNoDescriptor, Code::kUnavailable,
           "attach: the node cannot watch another process now");
    ProcessGone(session->id);
    return;
  }
  Reached(step::kProcessWatched);
}

}  // namespace pando::local
