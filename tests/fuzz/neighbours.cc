// Neighbours as those who are asked, who tell, and whose pages come.
#include "tests/fuzz/neighbours.h"

#include <algorithm>
#include <utility>

#include "node/control/peer_codec.h"
#include "node/core/hello.h"
#include "node/core/owned_prompt.h"
#include "tests/fuzz/prompts.h"
#include "tests/fuzz/wire.h"

namespace pando::fuzz {
namespace {

constexpr BootId kCoreBoot{7};
constexpr sim::Stamp kGarbage{~uint64_t{0}, 0, 0};
constexpr uint64_t kManyKeys = 5'000;
constexpr uint64_t kBytesOfAPage = 1 << 18;  // as the engine tells: four are enough to measure

template <class T>
T* Newest(std::vector<T>* given, uint32_t which) {
  return given->empty() ? nullptr : &(*given)[given->size() - 1 - which % given->size()];
}

KeySum SumOf(const std::set<uint64_t>& keys) {
  KeySum sum;
  for (const uint64_t key : keys) sum.Add(key);
  return sum;
}

// What is wrong with a hello or its answer, by `odd`.
enum OddHello : uint8_t {
  kNoAnswer = 2,
  kBusy,
  kRefused,
  kOtherVersion,
  kOtherHash,
  kOtherSecret,
  kOtherChecksum,
  kNoName,
  kItself,
  kSameName,
  kNewLife,
  kTwice,
  kNamesake,
  kNoData,
  kOtherAnswer,
};
// ... and with a grant.
enum OddGrant : uint8_t {
  kMiss = kRefused + 1,
  kInvalidGrant,
  kEarlier,
  kFurther,
  kFewChecksums,
  kOtherSize,
  kWrongChecksums,
};

}  // namespace

Neighbours::Neighbours(CoreWatch* watch) : watch_(watch) {
  for (uint32_t i = 0; i < kNodes; ++i) nodes_[i] = std::make_unique<Node>(PeerId(i + 1));
}

void Neighbours::Start() {
  watch_->Step(ClusterStarted{"core", kCoreBoot, "core-data", 42});
  Do({.kind = Kind::kPeers, .from = 7});
}

void Neighbours::Do(const Operation& operation) {
  switch (operation.kind) {
    case Kind::kPeers: {
      PeersChanged peers;
      for (uint32_t i = 0; i < kNodes; ++i) {
        if ((operation.from >> i & 1) != 0) peers.peers.push_back({PeerId(i + 1), "host:1"});
      }
      return watch_->Step(std::move(peers));
    }
    case Kind::kAnswer:
      return Answer(operation);
    case Kind::kFeed:
      return Feed(operation);
    case Kind::kFeedEnds:
      return EndFeed(operation);
    case Kind::kPulled:
      return Pulled(operation);
    case Kind::kSent:
      return Sent(operation);
    case Kind::kHello:
    case Kind::kGrant:
    case Kind::kDone:
    case Kind::kGoodbye:
      return Ask(operation);
    case Kind::kSubscribe:
      return Subscribe(operation);
    case Kind::kFeedReady:
      return Ready(operation);
    case Kind::kUnsubscribe: {
      if (told_.empty()) return;
      const uint64_t stream =
          std::next(told_.begin(), operation.which % static_cast<ptrdiff_t>(told_.size()))->first;
      Unsubscribed(stream);
      return watch_->Step(FeedDropped{stream});
    }
    default:
      return;
  }
}

void Neighbours::Take(Output& output) {
  if (auto* ask = std::get_if<AskPeer>(&output)) {
    calls_.push_back(std::move(*ask));
  } else if (auto* answer = std::get_if<AnswerPeer>(&output)) {
    watch_->Expect(answer->call == last_call_ && !answer_, "an answer to no call");
    answer_ = std::move(answer->answer);
  } else if (const auto* open = std::get_if<OpenFeed>(&output)) {
    streams_.push_back({open->stream, open->peer.value() - 1});
  } else if (const auto* close = std::get_if<CloseFeed>(&output)) {
    std::erase_if(streams_, [&](const Stream& stream) { return stream.id == close->stream; });
  } else if (const auto* feed = std::get_if<SendFeed>(&output)) {
    Hear(*feed);
  } else if (const auto* end = std::get_if<pando::EndFeed>(&output)) {
    Unsubscribed(end->stream);
  } else if (const auto* offer = std::get_if<OfferPages>(&output)) {
    offers_.push_back({offer->grant, {}, watch_->memory().Enter(offer->pages), offer->pages, {}});
  } else if (const auto* revoke = std::get_if<RevokeOffer>(&output)) {
    for (Offered& offered : offers_) offered.revoked |= offered.id == revoke->grant;
  } else if (const auto* start = std::get_if<StartPull>(&output)) {
    const std::vector<Page>& promised = promised_[start->grant.low].pages;
    Pull pull{start->pull, {}};
    for (const StartPull::Page& page : start->pages) {
      watch_->Expect(page.index < promised.size(), "a pull of a page that was not granted");
      if (page.index >= promised.size()) return;
      pull.pages.push_back(promised[page.index]);
      pull.pages.back().to = page.to;
      pull.pages.back().accessor = watch_->memory().EnterAlone(page.to);
    }
    pulls_.push_back(std::move(pull));
  }
}

void Neighbours::Leave() {
  constexpr int kRounds = 32;
  for (uint8_t node = 0; node < kNodes; ++node) Ask({.kind = Kind::kGoodbye, .who = node});
  for (int round = 0; round < kRounds; ++round) {
    while (!calls_.empty()) Answer({.odd = kNoAnswer});
    while (!pulls_.empty()) EndPull(0, PullStatus::kUnreachable, 0, false);
    watch_->Advance(Nanos{1'000'000'000} << round % 8);
    for (size_t i = offers_.size(); i-- > 0;) {
      if (offers_[i].revoked) EndOffer(i, 0);
    }
  }
  watch_->Expect(offers_.empty(), "a grant stands for longer than it may");
  watch_->Step(PeersChanged{});
}

std::optional<SpaceId> Neighbours::SpaceOf(const Operation& operation) const {
  const uint32_t spaces = watch_->core().cache().spaces();
  return spaces == 0 ? std::nullopt : std::optional(SpaceId(operation.more % spaces));
}

const SpaceShape* Neighbours::ShapeOf(const std::string& identity) const {
  const PrefixCache& cache = watch_->core().cache();
  for (uint32_t i = 0; i < cache.spaces(); ++i) {
    if (cache.shape(SpaceId(i)).identity == identity) return &cache.shape(SpaceId(i));
  }
  return nullptr;
}

// ---- Answers

PeerHello Neighbours::HelloOf(const Operation& operation, uint32_t node) const {
  PeerHello hello = FormulasOf("");
  hello.node_name = "node-" + std::to_string(node);
  hello.boot = BootOf(node);
  hello.data_address = "data-" + std::to_string(node);
  const uint8_t odd = operation.odd;
  const uint32_t next = (node + 1) % kNodes;
  if (odd == kOtherVersion) hello.protocol_min = hello.protocol_max = 9;
  if (odd == kOtherHash) ++hello.hash_formula;
  if (odd == kOtherSecret) ++hello.seed_check;
  if (odd == kOtherChecksum) ++hello.checksum_formula;
  if (odd == kNoName) hello.node_name.clear();
  if (odd == kItself) hello.boot = kCoreBoot;
  if (odd == kSameName) hello.node_name = "core";
  if (odd == kTwice) hello.boot = BootOf(next);
  if (odd == kNamesake) hello.node_name = "node-" + std::to_string(next);
  if (odd == kNoData) hello.data_address.clear();
  return hello;
}

HelloAnswer Neighbours::AnswerHello(const Operation& operation, uint32_t node) {
  if (operation.odd == kNewLife) ++nodes_[node]->life;
  HelloAnswer answer;
  answer.hello = HelloOf(operation, node);
  if (operation.odd == kBusy) answer.code = PeerCode::kBusy;
  if (operation.odd == kRefused) answer.code = PeerCode::kIncompatible;
  return answer;
}

// from: so many blocks less than were asked for.
GrantAnswer Neighbours::AnswerGrant(const Operation& operation, uint32_t node,
                                    const GrantRequest& request) {
  GrantAnswer answer;
  answer.boot = BootOf(node);
  const SpaceShape* shape = ShapeOf(request.space_identity);
  watch_->Expect(shape != nullptr, "a grant was asked for of no space");
  if (shape == nullptr) return answer;
  if (operation.odd == kBusy) answer.code = PeerCode::kBusy;
  if (operation.odd == kRefused) answer.code = PeerCode::kUnknown;
  if (operation.odd == kMiss) answer.code = PeerCode::kMiss;
  if (operation.odd == kInvalidGrant) answer.code = PeerCode::kInvalid;
  if (answer.code != PeerCode::kOk) return answer;
  answer.grant = {1, ++last_grant_};
  answer.from = request.from + (operation.odd == kEarlier ? 1 : 0);
  answer.to = request.to - operation.from % (request.to - request.from);
  if (operation.odd == kEarlier || operation.odd == kFurther) answer.to += 2;
  answer.page_bytes = Bytes(shape->page_bytes.value() + (operation.odd == kOtherSize ? 1 : 0));
  for (const Page& page : PromiseOf(request, answer.from, answer.to).pages) {
    answer.generations.push_back(1);
    answer.checksums.push_back(Checksum(page.stamp) + (operation.odd == kWrongChecksums ? 1 : 0));
  }
  if (operation.odd == kFewChecksums) {
    answer.generations.resize(answer.to - answer.from);
    answer.checksums.resize(answer.to - answer.from);
  }
  return answer;
}

// The pages of a grant, with what its blocks must hold.
Neighbours::Promised Neighbours::PromiseOf(const GrantRequest& request, uint32_t from,
                                           uint32_t to) const {
  Promised promised;
  const SpaceShape* shape = ShapeOf(request.space_identity);
  if (shape == nullptr) return promised;
  promised.prompt = request.prompt;
  if (request.of_grant) {
    const auto earlier = promised_.find(request.of_grant->low);
    if (earlier != promised_.end()) promised.prompt = earlier->second.prompt;
  }
  for (uint32_t shard = 0; shard < shape->shards; ++shard) {
    const auto stamps = StampsOf(shape->identity, shape->block_tokens, shard, promised.prompt);
    for (uint32_t block = from; block < to; ++block) {
      promised.pages.push_back(
          {.to = {}, .stamp = block < stamps.size() ? stamps[block] : kGarbage});
    }
  }
  return promised;
}

void Neighbours::Answer(const Operation& operation) {
  AskPeer* const found = Newest(&calls_, operation.which);
  if (found == nullptr) return;
  const AskPeer ask = std::move(*found);
  calls_.erase(calls_.begin() + (found - calls_.data()));
  const uint32_t node = ask.peer.value() - 1;
  PeerAnswerBody body = DoneAnswer{};
  const auto* grant = std::get_if<GrantRequest>(&ask.body);
  if (std::holds_alternative<HelloRequest>(ask.body)) body = AnswerHello(operation, node);
  if (grant != nullptr) body = AnswerGrant(operation, node, *grant);
  if (std::holds_alternative<GoodbyeRequest>(ask.body)) body = GoodbyeAnswer{};
  if (operation.odd == kOtherAnswer) body = DoneAnswer{};
  PeerAnswered answered{ask.call, std::nullopt, "no answer"};
  if (operation.odd != kNoAnswer) {
    const control::PeerCall call = static_cast<control::PeerCall>(body.index());
    auto read = control::DecodeAnswer(call, Bend(operation, control::EncodeAnswer(body)));
    if (auto* come = std::get_if<PeerAnswerBody>(&read)) answered.answer = std::move(*come);
  }
  const auto* granted = answered.answer ? std::get_if<GrantAnswer>(&*answered.answer) : nullptr;
  if (grant != nullptr && granted != nullptr && granted->code == PeerCode::kOk) {
    Promised promised = PromiseOf(*grant, granted->from, granted->to);
    for (size_t i = 0; i < promised.pages.size() && i < granted->checksums.size(); ++i) {
      Page& page = promised.pages[i];
      page.sound = granted->checksums[i] == Checksum(page.stamp);
    }
    promised_[granted->grant.low] = std::move(promised);
  }
  watch_->Step(std::move(answered));
}

// ---- What they tell

std::vector<uint64_t> Neighbours::KeysOf(const Operation& operation) const {
  std::vector<uint64_t> keys;
  const std::optional<SpaceId> space = SpaceOf(operation);
  if (!space) return keys;
  const PrefixCache& cache = watch_->core().cache();
  const uint32_t block_tokens = cache.shape(*space).block_tokens;
  const OwnedPrompt prompt(PromptOf(operation));
  if (prompt.Check(block_tokens)) return keys;
  const Match none = cache.Find(*space, prompt.view(), BlockCount(0));
  const uint64_t blocks = std::min<uint64_t>(operation.to, prompt.tokens() / block_tokens);
  cache.AppendKeys(none, prompt.view(), BlockCount(static_cast<uint32_t>(blocks)), &keys);
  keys.erase(keys.begin(),
             keys.begin() + static_cast<ptrdiff_t>(std::min<size_t>(operation.from, keys.size())));
  return keys;
}

// request: a snapshot whole (0), in parts (1), or its last part (2); a delta with blocks that
// appear (3) or vanish (4), or that begin to be computed (5) or no longer are (6).
FeedPiece Neighbours::PieceOf(const Operation& operation, uint32_t number) {
  Node& node = *nodes_[number];
  const uint32_t what = operation.request % 7;
  std::vector<uint64_t> keys = KeysOf(operation);
  FeedPiece piece;
  piece.boot = BootOf(number);
  if (what < 3) {
    piece.part = what == 0 ? 1 : node.part + 1;
    piece.last = what != 1;
    node.part = piece.last ? 0 : piece.part;
    if (piece.part == 1) {
      node.tells.clear();
      node.makes.clear();
    }
  } else {
    ++node.sequence;
  }
  piece.sequence = node.sequence;
  // So many that its tables must grow.
  if (operation.odd == 10) {
    for (uint64_t i = 0; i < kManyKeys; ++i) keys.push_back(DigestOf(i));
  }
  if (what <= 3) {
    node.tells.insert(keys.begin(), keys.end());
    piece.adds = std::move(keys);
  } else if (what == 4) {
    std::reverse(keys.begin(), keys.end());
    for (const uint64_t key : keys) node.tells.erase(key);
    piece.removes = std::move(keys);
  } else if (what == 5) {
    node.makes.insert(keys.begin(), keys.end());
    piece.prefill_adds = std::move(keys);
  } else {
    for (const uint64_t key : keys) node.makes.erase(key);
    piece.prefill_removes = std::move(keys);
  }
  piece.held = SumOf(node.tells);
  piece.prefilling = SumOf(node.makes);
  if (operation.odd == 2) ++piece.held.digest;
  if (operation.odd == 3) piece.sequence += 5;
  if (operation.odd == 4) piece.boot = BootId(piece.boot.value() + 1);
  if (operation.odd == 5) piece.last = true;
  if (operation.odd == 6) piece.prefill_removes = {1};
  if (operation.odd == 7) --piece.sequence;
  return piece;
}

void Neighbours::Feed(const Operation& operation) {
  const Stream* stream = Newest(&streams_, operation.which);
  if (stream == nullptr) return;
  FeedArrived arrived{stream->id, std::nullopt, std::nullopt};
  const FeedPiece piece = PieceOf(operation, stream->node);
  std::optional<NodeTotals> totals;
  if (operation.odd == 8 || operation.odd == 9) totals.emplace().pages = operation.more;
  const FeedPiece* told = operation.odd == 9 ? nullptr : &piece;
  auto news = control::DecodeFeed(Bend(operation, control::EncodeFeed(told, totals)));
  if (auto* read = std::get_if<control::FeedNews>(&news)) {
    arrived.piece = std::move(read->piece);
    arrived.totals = read->totals;
  }
  watch_->Step(std::move(arrived));
}

void Neighbours::EndFeed(const Operation& operation) {
  const Stream* stream = Newest(&streams_, operation.which);
  if (stream == nullptr) return;
  const uint64_t id = stream->id;
  std::erase_if(streams_, [&](const Stream& s) { return s.id == id; });
  watch_->Step(FeedEnded{id, "reset"});
}

// ---- Transfers

// to: so many pages more; from: their outcome; form: 1 and the pull ends, 2 over a connection that
// was there; more: how it ends; time: how long it took.
void Neighbours::Pulled(const Operation& operation) {
  Pull* const pull = Newest(&pulls_, operation.which);
  if (pull == nullptr) return;
  const auto at = static_cast<size_t>(pull - pulls_.data());
  std::vector<uint32_t> positions;
  for (uint32_t i = 0; i < pull->pages.size() && positions.size() <= operation.to; ++i) {
    if (pull->pages[i].open) positions.push_back(i);
  }
  if (!positions.empty()) Outcome(pull, positions, static_cast<PageOutcome>(operation.from % 3));
  if ((operation.form & 1) == 0) return;
  EndPull(at, static_cast<PullStatus>(operation.more % 6), NanosOf(operation.time % 40),
          (operation.form & 2) != 0);
}

// As an engine does it: what came with another checksum than was promised is bad.
void Neighbours::Outcome(Pull* pull, const std::vector<uint32_t>& positions, PageOutcome outcome) {
  PullPages pages{pull->id, {}};
  for (const uint32_t position : positions) {
    Page& page = pull->pages[position];
    const bool bad = outcome == PageOutcome::kArrived && !page.sound;
    pages.pages.push_back({position, bad ? PageOutcome::kBad : outcome});
    const bool good = pages.pages.back().outcome == PageOutcome::kArrived;
    watch_->memory().Write(page.accessor, page.to, good ? page.stamp : kGarbage);
    watch_->memory().Leave(page.accessor);
    page.open = false;
  }
  watch_->Step(TransferHappened{std::move(pages)});
}

void Neighbours::EndPull(size_t at, PullStatus status, Nanos took, bool warm) {
  Pull& pull = pulls_[at];
  const uint64_t id = pull.id;
  std::vector<uint32_t> open;
  uint64_t bytes = 0;
  for (uint32_t i = 0; i < pull.pages.size(); ++i) {
    if (pull.pages[i].open) open.push_back(i);
    bytes += pull.pages[i].open ? 0 : kBytesOfAPage;
  }
  if (!open.empty()) Outcome(&pull, open, PageOutcome::kFailed);
  pulls_.erase(pulls_.begin() + static_cast<ptrdiff_t>(at));
  watch_->Step(TransferHappened{PullEnded{id, status, bytes, took, warm}});
}

void Neighbours::Sent(const Operation& operation) {
  const Offered* offered = Newest(&offers_, operation.which);
  if (offered == nullptr || !offered->revoked) return;
  EndOffer(static_cast<size_t>(offered - offers_.data()), operation.more);
}

void Neighbours::EndOffer(size_t at, uint64_t pages_sent) {
  const Offered offered = std::move(offers_[at]);
  offers_.erase(offers_.begin() + static_cast<ptrdiff_t>(at));
  Verify(offered);
  watch_->memory().Leave(offered.accessor);
  watch_->Step(TransferHappened{GrantEnded{offered.id, pages_sent}});
}

}  // namespace pando::fuzz
