// Neighbours as guests: what they ask the core, and what they hear from it.
#include <algorithm>
#include <utility>

#include "node/control/peer_codec.h"
#include "node/core/owned_prompt.h"
#include "tests/fuzz/neighbours.h"
#include "tests/fuzz/prompts.h"
#include "tests/fuzz/wire.h"

namespace pando::fuzz {
namespace {

constexpr BootId kCoreBoot{7};
constexpr uint64_t kSweep = 1 << 16;

}  // namespace

HelloRequest Neighbours::Greeting(const Operation& operation) const {
  return {HelloOf(operation, NodeOf(operation))};
}

GrantRequest Neighbours::Wish(const Operation& operation) const {
  GrantRequest wish;
  wish.requester = BootOf(NodeOf(operation));
  wish.boot = operation.odd == 2 ? BootId(8) : kCoreBoot;
  wish.from = operation.from;
  wish.to = operation.to;
  wish.life = operation.time % 64 * Nanos{1'000'000'000};
  wish.space_identity = "nowhere";
  wish.shards = 1;
  const std::optional<SpaceId> space = SpaceOf(operation);
  if (!space || operation.odd == 3) return wish;
  const SpaceShape& shape = watch_->core().cache().shape(*space);
  wish.space_identity = shape.identity;
  wish.shards = shape.shards + (operation.odd == 4 ? 1 : 0);
  if (operation.odd == 5 && !offers_.empty()) {
    wish.of_grant = offers_[operation.which % offers_.size()].id;
  } else if (operation.odd == 6) {
    wish.prompt = PromptOf(operation);
  } else {
    const OwnedPrompt whole(PromptOf(operation));
    wish.prompt = FirstBlocks(whole.view(), wish.to, shape.block_tokens);
  }
  return wish;
}

DoneRequest Neighbours::Thanks(const Operation& operation) const {
  DoneRequest thanks;
  thanks.requester = BootOf(NodeOf(operation));
  if (offers_.empty() || operation.odd == 3) thanks.grants = {{9, 9}};
  if (!offers_.empty()) thanks.grants.push_back(offers_[operation.which % offers_.size()].id);
  if (operation.odd == 2) thanks.bad.push_back({thanks.grants.back(), {operation.from}});
  return thanks;
}

void Neighbours::Ask(const Operation& operation) {
  PeerRequestBody body = GoodbyeRequest{BootOf(NodeOf(operation)), "it leaves"};
  if (operation.kind == Kind::kHello) body = Greeting(operation);
  if (operation.kind == Kind::kGrant) body = Wish(operation);
  if (operation.kind == Kind::kDone) body = Thanks(operation);
  const control::PeerCall call = control::CallOf(body);
  auto read = control::DecodeRequest(call, Bend(operation, control::EncodeRequest(body)));
  if (const auto* malformed = std::get_if<control::Malformed>(&read)) {
    if (const auto refusal = control::RefusalOf(call, *malformed)) control::EncodeAnswer(*refusal);
    return;
  }
  body = std::get<PeerRequestBody>(read);
  answer_.reset();
  watch_->Step(PeerAsks{++last_call_, GrantId{2, ++last_grant_},
                        std::move(std::get<PeerRequestBody>(read))});
  watch_->Expect(answer_ && answer_->index() == body.index(), "a peer's call was not answered");
  if (!answer_) return;
  const auto heard = control::DecodeAnswer(call, control::EncodeAnswer(*answer_));
  watch_->Expect(std::holds_alternative<PeerAnswerBody>(heard), "an answer that peers cannot read");
  const auto* granted = std::get_if<GrantAnswer>(&*answer_);
  if (granted != nullptr && granted->code == PeerCode::kOk) {
    Granted(std::get<GrantRequest>(body), *granted);
  }
}

// What is offered is what was asked for.
void Neighbours::Granted(const GrantRequest& request, const GrantAnswer& answer) {
  const auto offered = std::find_if(offers_.begin(), offers_.end(),
                                    [&](const Offered& offer) { return offer.id == answer.grant; });
  const SpaceShape* shape = ShapeOf(request.space_identity);
  const bool range =
      answer.from == request.from && answer.to > answer.from && answer.to <= request.to;
  watch_->Expect(offered != offers_.end() && shape != nullptr && range,
                 "a grant without an offer, or of other blocks");
  if (offered == offers_.end() || shape == nullptr || !range) return;
  offered->prompt = request.prompt;
  for (const Offered& earlier : offers_) {
    if (request.of_grant && earlier.id == *request.of_grant) offered->prompt = earlier.prompt;
  }
  for (uint32_t shard = 0; shard < shape->shards; ++shard) {
    const auto stamps = StampsOf(shape->identity, shape->block_tokens, shard, offered->prompt);
    watch_->Expect(answer.to <= stamps.size(), "a grant of more blocks than the prompt has");
    if (answer.to > stamps.size()) return;
    offered->stamps.insert(offered->stamps.end(), stamps.begin() + answer.from,
                           stamps.begin() + answer.to);
  }
  const bool whole = offered->stamps.size() == offered->pages.size() &&
                     answer.checksums.size() == offered->pages.size() &&
                     answer.generations.size() == offered->pages.size();
  watch_->Expect(whole, "a grant with more or fewer pages than its blocks have");
  if (!whole) return offered->stamps.clear();
  for (size_t i = 0; i < offered->stamps.size(); ++i) {
    watch_->Expect(answer.checksums[i] == Checksum(offered->stamps[i]),
                   "a wrong checksum was told");
  }
  Verify(*offered);
}

void Neighbours::Verify(const Offered& offered) {
  for (size_t i = 0; i < offered.stamps.size(); ++i) {
    watch_->Expect(watch_->memory().Read(offered.accessor, offered.pages[i]) == offered.stamps[i],
                   "a page with wrong bytes was offered");
  }
}

// ---- Feeds

// As Peers asks: on from where the view stands, or anew.
void Neighbours::Subscribe(const Operation& operation) {
  const uint32_t number = NodeOf(operation);
  Node& node = *nodes_[number];
  FeedRequest request{BootOf(number), BootId(), 0};
  if (node.reader.complete())
    request = {BootOf(number), node.reader.boot(), node.reader.sequence()};
  const bool honest = operation.odd < 2;
  if (operation.odd == 2) request = {BootOf(number), kCoreBoot, operation.more};
  if (operation.odd == 3) request.requester = BootId(1);
  const auto read =
      control::DecodeFeedRequest(Bend(operation, control::EncodeFeedRequest(request)));
  const auto* asked = std::get_if<FeedRequest>(&read);
  if (asked == nullptr) return;
  const uint64_t stream = ++last_stream_;
  told_[stream] = {number, false};
  if (honest) {
    node.reader.Interrupted();
    node.feed = stream;
  }
  watch_->Step(FeedAsked{stream, *asked});
}

void Neighbours::Hear(const SendFeed& feed) {
  const auto told = told_.find(feed.stream);
  watch_->Expect(told != told_.end() && !told->second.sending,
                 "a piece of a feed that is over, or before the last one had gone");
  if (told == told_.end()) return;
  told->second.sending = true;
  const auto news = control::DecodeFeed(control::EncodeFeed(feed.piece.get(), feed.totals));
  const auto* read = std::get_if<control::FeedNews>(&news);
  watch_->Expect(read != nullptr && read->piece, "a piece of a feed that peers cannot read");
  Node& node = *nodes_[told->second.node];
  if (read == nullptr || !read->piece || node.feed != feed.stream) return;
  watch_->Expect(node.reader.Apply(*read->piece) == FeedVerdict::kApplied,
                 "a piece of a feed that its reader must refuse");
  node.held.Sweep(kSweep);
  node.prefilling.Sweep(kSweep);
}

void Neighbours::Ready(const Operation& operation) {
  std::vector<uint64_t> sending;
  for (const auto& [stream, told] : told_) {
    if (told.sending) sending.push_back(stream);
  }
  if (sending.empty()) return;
  const uint64_t stream = sending[operation.which % sending.size()];
  told_[stream].sending = false;
  watch_->Step(FeedReady{stream});
}

void Neighbours::Unsubscribed(uint64_t stream) {
  const auto told = told_.find(stream);
  watch_->Expect(told != told_.end(), "a feed ended twice");
  if (told == told_.end()) return;
  Node& node = *nodes_[told->second.node];
  told_.erase(told);
  if (node.feed != stream) return;
  node.feed = 0;
  node.reader.Interrupted();
}

}  // namespace pando::fuzz
