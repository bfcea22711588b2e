#include "node/control/peer_client_calls.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "node/control/peer_transport.h"
#include "node/core/cluster/limits.h"
#include "node/core/problem.h"

namespace pando::control {
namespace {

constexpr int kFirstBackoffMillis = 100;
constexpr int kConnectMillis = 2'000;
constexpr int kBackoffMaxMillis = 3'000;
constexpr std::chrono::milliseconds kPatience{300};
constexpr Nanos kNanosPerSecond = 1'000'000'000;
constexpr int kOnlyUncompressed = 1 << GRPC_COMPRESS_NONE;

grpc::ChannelArguments ChannelOptions() {
  grpc::ChannelArguments options;
  options.SetMaxReceiveMessageSize(limits::kPeerMessageBytes);
  options.SetMaxSendMessageSize(limits::kPeerMessageBytes);
  options.SetInt(GRPC_COMPRESSION_CHANNEL_ENABLED_ALGORITHMS_BITSET, kOnlyUncompressed);
  options.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMillis);
  options.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMillis);
  options.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  options.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  options.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, kWindowBytes);
  options.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kFirstBackoffMillis);
  options.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectMillis);
  options.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kBackoffMaxMillis);
  options.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  options.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  options.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  options.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return options;
}

gpr_timespec DeadlineOf(Nanos deadline) {
  const Nanos time = std::max<Nanos>(deadline, 0);
  return {time / kNanosPerSecond, static_cast<int32_t>(time % kNanosPerSecond),
          GPR_CLOCK_MONOTONIC};
}

}  // namespace

std::unique_ptr<PeerClientCalls::Link> PeerClientCalls::MakeLink(const std::string& address) const {
  auto link = std::make_unique<Link>();
  link->address = address;
  if (const std::optional<std::string> target = TargetOf(address)) {
    link->stub = std::make_unique<grpc::GenericStub>(
        grpc::CreateCustomChannel(*target, MakePeerCredentials(), ChannelOptions()));
  }
  return link;
}

void PeerClientCalls::SetPeers(const std::vector<PeersChanged::Peer>& peers) {
  std::map<PeerId, std::unique_ptr<Link>> links;
  for (const PeersChanged::Peer& peer : peers) {
    const auto known = links_.find(peer.id);
    if (known != links_.end() && known->second->address == peer.address) {
      links[peer.id] = std::move(known->second);
      links_.erase(known);
    } else {
      links[peer.id] = MakeLink(peer.address);
    }
  }
  const auto gone = [this](PeerId peer) { return links_.contains(peer); };
  for (const auto& [id, call] : calls_) {
    if (gone(call->peer)) call->context.TryCancel();
  }
  for (const auto& [stream, feed] : feeds_) {
    if (gone(feed->peer)) feed->context.TryCancel();
  }
  links_ = std::move(links);
}

// ---- Calls

void PeerClientCalls::Refuse(const AskPeer& ask, std::string why) {
  deliver_(PeerAnswered{ask.call, std::nullopt, std::move(why)});
}

void PeerClientCalls::Ask(const AskPeer& ask) {
  const auto link = links_.find(ask.peer);
  if (link == links_.end()) return Refuse(ask, "it is no peer any more");
  if (link->second->stub == nullptr) {
    return Refuse(ask, Text("found the address ", Quotable(link->second->address),
                            "; it has to be numeric, with a port"));
  }
  if (link->second->calls >= limits::kAsksPerPeer) {
    return Refuse(ask, Text(limits::kAsksPerPeer, " calls wait for its answers already"));
  }
  std::string request = EncodeRequest(ask.body);
  auto owned = std::make_unique<Call>();
  Call* const call = owned.get();
  call->id = ask.call;
  call->peer = ask.peer;
  call->call = CallOf(ask.body);
  call->context.set_deadline(DeadlineOf(ask.deadline));
  call->finished.happened = [this, call](bool) { Finished(call); };
  call->reader = link->second->stub->PrepareUnaryCall(
      &call->context, kPeerCallPaths[static_cast<size_t>(call->call)], BufferOf(std::move(request)),
      queue_);
  ++link->second->calls;
  calls_[call->id] = std::move(owned);
  call->reader->StartCall();
  call->reader->Finish(&call->answer, &call->status, &call->finished);
}

void PeerClientCalls::Finished(Call* call) {
  PeerAnswered answered{call->id, std::nullopt, ""};
  if (call->status.ok()) {
    std::variant<PeerAnswerBody, Malformed> read =
        DecodeAnswer(call->call, Flat(call->answer).bytes());
    if (const auto* malformed = std::get_if<Malformed>(&read)) {
      answered.why = "malformed answer: " + malformed->message;
    } else {
      answered.answer = std::move(std::get<PeerAnswerBody>(read));
    }
  } else {
    answered.why = TextOf(call->status);
  }
  if (const auto link = links_.find(call->peer); link != links_.end() && link->second->calls > 0) {
    --link->second->calls;
  }
  calls_.erase(call->id);
  deliver_(std::move(answered));
  StopIfOver();
}

// ---- Feeds

void PeerClientCalls::Open(const OpenFeed& open) {
  const auto link = links_.find(open.peer);
  if (link == links_.end() || link->second->stub == nullptr) {
    return deliver_(
        FeedEnded{open.stream, "it is no peer any more, or its address is not numeric"});
  }
  auto owned = std::make_unique<Feed>();
  Feed* const feed = owned.get();
  feed->stream = open.stream;
  feed->peer = open.peer;
  feed->request = BufferOf(EncodeFeedRequest(open.request));
  feed->started.happened = [this, feed](bool ok) { Started(feed, ok); };
  feed->wrote.happened = [this, feed](bool) { Over(feed); };
  feed->read.happened = [this, feed](bool ok) { Read(feed, ok); };
  feed->finished.happened = [this, feed](bool) { Ended(feed); };
  feed->rpc = link->second->stub->PrepareCall(&feed->context, kFeedPath, queue_);
  feeds_[feed->stream] = std::move(owned);
  ++feed->operations;
  feed->rpc->StartCall(&feed->started);
}

void PeerClientCalls::Started(Feed* feed, bool ok) {
  if (ok && !feed->closed) {
    ++feed->operations;
    feed->rpc->WriteLast(feed->request, grpc::WriteOptions(), &feed->wrote);
    ReadNext(feed);
  } else {
    Finish(feed);
  }
  Over(feed);
}

void PeerClientCalls::ReadNext(Feed* feed) {
  ++feed->operations;
  feed->rpc->Read(&feed->in, &feed->read);
}

void PeerClientCalls::Read(Feed* feed, bool ok) {
  if (!ok || feed->closed) {
    Finish(feed);
    return Over(feed);
  }
  FeedArrived arrived{feed->stream, std::nullopt, std::nullopt};
  std::variant<FeedNews, Malformed> news = DecodeFeed(Flat(feed->in).bytes());
  feed->in.Clear();
  if (auto* read = std::get_if<FeedNews>(&news)) {
    arrived.piece = std::move(read->piece);
    arrived.totals = read->totals;
  }
  feed->at_owner = true;
  deliver_(std::move(arrived));
  Over(feed);
}

void PeerClientCalls::Stepped(uint64_t stream) {
  const auto found = feeds_.find(stream);
  if (found == feeds_.end() || !found->second->at_owner) return;
  found->second->at_owner = false;
  if (!found->second->finishing) ReadNext(found->second.get());
}

void PeerClientCalls::Close(uint64_t stream) {
  const auto found = feeds_.find(stream);
  if (found == feeds_.end()) return;
  Feed* const feed = found->second.get();
  feed->closed = true;
  feed->context.TryCancel();
  // Otherwise its read, or its start, ends now.
  if (feed->at_owner) Finish(feed);
}

void PeerClientCalls::Finish(Feed* feed) {
  if (std::exchange(feed->finishing, true)) return;
  ++feed->operations;
  feed->rpc->Finish(&feed->status, &feed->finished);
}

void PeerClientCalls::Ended(Feed* feed) {
  if (!feed->closed) {
    feed->closed = true;
    deliver_(FeedEnded{feed->stream, TextOf(feed->status)});
  }
  Over(feed);
}

void PeerClientCalls::Over(Feed* feed) {
  if (--feed->operations > 0 || !feed->finishing) return;
  feeds_.erase(feed->stream);
  StopIfOver();
}

// ---- The end

void PeerClientCalls::Stop(std::function<void()> stopped) {
  stopped_ = std::move(stopped);
  std::vector<uint64_t> streams;
  for (const auto& [stream, feed] : feeds_) streams.push_back(stream);
  for (const uint64_t stream : streams) Close(stream);
  waiting_ = true;
  patience_over_.happened = [this](bool) {
    waiting_ = false;
    for (const auto& [id, call] : calls_) call->context.TryCancel();
    StopIfOver();
  };
  patience_.Set(queue_, std::chrono::system_clock::now() + kPatience, &patience_over_);
  StopIfOver();
}

void PeerClientCalls::StopIfOver() {
  if (!stopped_ || !calls_.empty() || !feeds_.empty()) return;
  if (waiting_) return patience_.Cancel();  // which comes back here
  links_.clear();
  std::exchange(stopped_, nullptr)();
}

}  // namespace pando::control
