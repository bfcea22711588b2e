#include "node/control/peer_server_calls.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "node/control/peer_transport.h"
#include "node/control/random_number.h"
#include "node/core/problem.h"
#include "radix/base/check.h"

namespace pando::control {
namespace {

bool DeadlineTooFar(const grpc::ServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  return left > std::chrono::nanoseconds(limits::kPeerCallLife);
}

grpc::Status Stopping() {
  return {grpc::StatusCode::UNAVAILABLE, "the node is stopping"};
}

}  // namespace

void PeerServerCalls::AcceptNext() {
  if (stopped_) return;
  auto owned = std::make_unique<Call>();
  Call* const call = owned.get();
  call->id = ++last_id_;
  call->accepted.happened = [this, call](bool ok) { Accepted(call, ok); };
  call->read.happened = [this, call](bool ok) { Read(call, ok); };
  call->wrote.happened = [this, call](bool ok) { Wrote(call, ok); };
  call->finished.happened = [this, call](bool) { Over(call); };
  call->done.happened = [this, call](bool) { Done(call); };
  all_[call->id] = std::move(owned);
  call->context.AsyncNotifyWhenDone(&call->done);
  service_.RequestCall(&call->context, &call->stream, queue_, queue_, &call->accepted);
}

void PeerServerCalls::Accepted(Call* call, bool ok) {
  if (!ok) {  // the server has ended; `done` does not come
    return Forget(call);
  }
  AcceptNext();
  if (std::optional<grpc::Status> refused = Admit(call)) return Finish(call, *refused);
  ++call->operations;
  call->stream.Read(&call->in, &call->read);
}

std::optional<grpc::Status> PeerServerCalls::Admit(Call* call) {
  if (stopped_) return Stopping();
  const std::string& method = call->context.method();
  const auto* const path = std::find(kPeerCallPaths.begin(), kPeerCallPaths.end(), method);
  const bool feed = method == kFeedPath;
  if (!feed && path == kPeerCallPaths.end()) {
    return grpc::Status(grpc::StatusCode::UNIMPLEMENTED,
                        Text("found ", Quotable(method), "; a node serves pando.v1.Peer"));
  }
  uint32_t& count = feed ? feeds_ : calls_;
  const uint32_t most = feed ? options_.feeds_max : options_.calls_max;
  if (count >= most) {
    ++counters_.refused_busy;
    return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                        Text(count, feed ? " feeds" : " calls", " are being served, ", most,
                             " are allowed at once; try again"));
  }
  if (!feed && DeadlineTooFar(call->context)) {
    ++counters_.refused_malformed;
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT,
                        Text("deadline: found none, or a far one; say one of at most ",
                             limits::kPeerCallLife / 1'000'000'000, " s"));
  }
  if (!feed) call->call = static_cast<PeerCall>(path - kPeerCallPaths.begin());
  call->counted = true;
  ++count;
  ++(feed ? counters_.feeds : counters_.calls);
  return std::nullopt;
}

void PeerServerCalls::Read(Call* call, bool ok) {
  if (call->state == State::kReading) {
    if (ok && !call->is_done) {
      const Flat message(call->in);
      call->call ? ReadCall(call, message.bytes()) : ReadFeed(call, message.bytes());
    } else {
      RefuseMalformed(
          call, Text("no request came, or one of more than ", limits::kPeerMessageBytes, " bytes"));
    }
    call->in.Clear();
  }
  Over(call);
}

void PeerServerCalls::ReadCall(Call* call, std::string_view bytes) {
  std::variant<PeerRequestBody, Malformed> request = DecodeRequest(*call->call, bytes);
  if (const auto* malformed = std::get_if<Malformed>(&request)) {
    const std::optional<PeerAnswerBody> answer = RefusalOf(*call->call, *malformed);
    if (!answer) return RefuseMalformed(call, malformed->message);
    ++counters_.refused_malformed;
    return FinishWith(call, *answer);
  }
  call->state = State::kWaiting;
  options_.deliver(PeerAsks{call->id, GrantId{RandomNumber(), RandomNumber()},
                            std::move(std::get<PeerRequestBody>(request))});
}

void PeerServerCalls::ReadFeed(Call* call, std::string_view bytes) {
  const std::variant<FeedRequest, Malformed> request = DecodeFeedRequest(bytes);
  if (const auto* malformed = std::get_if<Malformed>(&request)) {
    return RefuseMalformed(call, malformed->message);
  }
  call->state = State::kWaiting;
  options_.deliver(FeedAsked{call->id, std::get<FeedRequest>(request)});
}

void PeerServerCalls::RefuseMalformed(Call* call, const std::string& message) {
  ++counters_.refused_malformed;
  Finish(call, {grpc::StatusCode::INVALID_ARGUMENT, message});
}

PeerServerCalls::Call* PeerServerCalls::Waiting(uint64_t id, bool feed) {
  const auto found = all_.find(id);
  if (found == all_.end()) return nullptr;
  Call* const call = found->second.get();
  const bool fits = call->state == State::kWaiting && !call->is_done && !call->end_with &&
                    call->call.has_value() != feed;
  return fits ? call : nullptr;
}

void PeerServerCalls::Answer(const AnswerPeer& answer) {
  Call* const call = Waiting(answer.call, /*feed=*/false);
  if (call != nullptr) FinishWith(call, answer.answer);
}

void PeerServerCalls::FinishWith(Call* call, const PeerAnswerBody& answer) {
  call->state = State::kFinished;
  ++call->operations;
  call->stream.WriteAndFinish(BufferOf(EncodeAnswer(answer)), grpc::WriteOptions(),
                              grpc::Status::OK, &call->finished);
}

void PeerServerCalls::Finish(Call* call, const grpc::Status& status) {
  if (call->state == State::kFinished) return;
  call->state = State::kFinished;
  ++call->operations;
  call->stream.Finish(status, &call->finished);
}

void PeerServerCalls::Send(const SendFeed& send) {
  Call* const call = Waiting(send.stream, /*feed=*/true);
  if (call == nullptr) return;
  PANDO_CHECK(!call->writing) << "feed " << send.stream << " has a message on its way";
  call->writing = true;
  ++call->operations;
  call->stream.Write(BufferOf(EncodeFeed(send.piece.get(), send.totals)), &call->wrote);
}

void PeerServerCalls::Wrote(Call* call, bool ok) {
  call->writing = false;
  if (call->end_with) {
    Finish(call, *call->end_with);
  } else if (ok && !call->is_done && call->state == State::kWaiting) {
    options_.deliver(FeedReady{call->id});
  }
  Over(call);
}

void PeerServerCalls::End(const EndFeed& end) {
  Call* const call = Waiting(end.stream, /*feed=*/true);
  if (call == nullptr) return;
  const grpc::Status status = StatusOf(end.code, end.message);
  if (call->writing) {
    call->end_with = status;
  } else {
    Finish(call, status);
  }
}

void PeerServerCalls::Done(Call* call) {
  call->is_done = true;
  if (call->state == State::kWaiting) {
    ++counters_.gone;
    if (!call->call && !call->end_with) options_.deliver(FeedDropped{call->id});
  }
  if (call->counted) --(call->call ? calls_ : feeds_);
  call->counted = false;
  ForgetIfOver(call);
}

void PeerServerCalls::Stop(std::function<void()> stopped) {
  stopped_ = std::move(stopped);
  for (const auto& [id, call] : all_) {
    // The one that is not accepted yet ends with the server.
    if (!call->counted) continue;
    if (call->writing) {
      call->end_with = Stopping();
      call->context.TryCancel();
    } else {
      Finish(call.get(), Stopping());
    }
  }
}

void PeerServerCalls::Over(Call* call) {
  --call->operations;
  ForgetIfOver(call);
}

void PeerServerCalls::ForgetIfOver(Call* call) {
  if (call->is_done && call->operations == 0) Forget(call);
}

void PeerServerCalls::Forget(Call* call) {
  all_.erase(call->id);
  if (stopped_ && all_.empty()) stopped_();
}

}  // namespace pando::control
