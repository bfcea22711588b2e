// Messages between nodes as bytes: each is decoded as all that it could be, what is taken is said
// again in the same way, and a core and a reader of feeds are told of it.
//
// input = messages, each {kind: u8, length: u16 little-endian} + bytes; the last may be cut short
#include <google/protobuf/stubs/logging.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "node/control/peer_codec.h"
#include "node/core/cluster/feed_reader.h"
#include "radix/base/check.h"
#include "tests/fuzz/core_watch.h"
#include "tests/fuzz/targets.h"
#include "tests/node/control/reread.h"

namespace pando::fuzz {
namespace {

using control::PeerCall;

constexpr uint32_t kCalls = 4;
constexpr uint32_t kFeedKind = 2 * kCalls, kMessageKinds = kFeedKind + 2;
constexpr uint64_t kSweep = 1 << 12;

void Expect(const std::string& broken) {
  PANDO_CHECK(broken.empty()) << broken;
}

class Listener {
 public:
  Listener() : watch_({.extents = 1, .extent_pages = 4}) {
    watch_.on_output = [this](Output& output) { Take(output); };
    watch_.Step(ClusterStarted{"core", BootId(7), "data", 1});
    watch_.Step(PeersChanged{{{PeerId(1), "host:1"}}});
  }

  void Hear(uint32_t kind, std::string_view bytes) {
    if (kind < kCalls) return HearRequest(static_cast<PeerCall>(kind), bytes);
    if (kind < 2 * kCalls) return HearAnswer(static_cast<PeerCall>(kind - kCalls), bytes);
    kind == kFeedKind ? HearFeed(bytes) : HearFeedRequest(bytes);
  }

  void End() {
    watch_.Advance(Nanos{1} << 38);
    PANDO_CHECK(watch_.trouble().empty()) << watch_.trouble();
    for (const Directory* directory : {&held_, &prefilling_}) {
      const std::string broken = directory->CheckInvariants();
      PANDO_CHECK(broken.empty()) << broken;
    }
  }

 private:
  void Take(Output& output) {
    if (auto* ask = std::get_if<AskPeer>(&output)) asked_.push_back(std::move(*ask));
    if (const auto* open = std::get_if<OpenFeed>(&output)) stream_ = open->stream;
    if (const auto* send = std::get_if<SendFeed>(&output)) sending_ = send->stream;
  }

  void HearRequest(PeerCall call, std::string_view bytes) {
    auto read = control::DecodeRequest(call, bytes);
    Expect(control::RereadRequest(call, read));
    if (auto* body = std::get_if<PeerRequestBody>(&read)) {
      return watch_.Step(PeerAsks{++last_, GrantId{1, last_}, std::move(*body)});
    }
    const auto refusal = control::RefusalOf(call, std::get<control::Malformed>(read));
    if (refusal) control::EncodeAnswer(*refusal);
  }

  // The answer to the newest call of its kind, if there is one.
  void HearAnswer(PeerCall call, std::string_view bytes) {
    auto read = control::DecodeAnswer(call, bytes);
    Expect(control::RereadAnswer(call, read));
    auto* body = std::get_if<PeerAnswerBody>(&read);
    const auto asked = std::find_if(asked_.rbegin(), asked_.rend(), [&](const AskPeer& ask) {
      return control::CallOf(ask.body) == call;
    });
    if (body == nullptr || asked == asked_.rend()) return;
    const uint64_t number = asked->call;
    asked_.erase(std::next(asked).base());
    watch_.Step(PeerAnswered{number, std::move(*body), ""});
  }

  void HearFeed(std::string_view bytes) {
    auto read = control::DecodeFeed(bytes);
    Expect(control::RereadFeed(read));
    FeedArrived arrived{stream_, std::nullopt, std::nullopt};
    if (auto* news = std::get_if<control::FeedNews>(&read)) {
      PANDO_CHECK(news->piece || news->totals) << "news of nothing";
      if (news->piece) reader_.Apply(*news->piece);
      arrived.piece = std::move(news->piece);
      arrived.totals = news->totals;
    } else {
      reader_.Malformed();
    }
    held_.Sweep(kSweep);
    prefilling_.Sweep(kSweep);
    if (stream_ != 0) watch_.Step(std::move(arrived));
  }

  void HearFeedRequest(std::string_view bytes) {
    const auto read = control::DecodeFeedRequest(bytes);
    Expect(control::RereadFeedRequest(read));
    const auto* request = std::get_if<FeedRequest>(&read);
    if (request == nullptr) return;
    watch_.Step(FeedAsked{++last_, *request});
    if (const uint64_t sent = std::exchange(sending_, 0)) watch_.Step(FeedReady{sent});
  }

  CoreWatch watch_;
  std::vector<AskPeer> asked_;
  uint64_t stream_ = 0, sending_ = 0, last_ = 0;
  Directory held_{1}, prefilling_{2};
  FeedReader reader_{{.peer = PeerId(1)}, &held_, &prefilling_};
};

}  // namespace

void PeerMessages(Input input) {
  const google::protobuf::LogSilencer quiet;
  Listener listener;
  constexpr size_t kHeaderBytes = 3;
  while (input.size() > kHeaderBytes) {
    const size_t length = input[1] + size_t{256} * input[2];
    const Input bytes =
        input.subspan(kHeaderBytes).first(std::min(length, input.size() - kHeaderBytes));
    listener.Hear(input[0] % kMessageKinds,
                  {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    input = input.subspan(kHeaderBytes + bytes.size());
  }
  listener.End();
}

}  // namespace pando::fuzz
