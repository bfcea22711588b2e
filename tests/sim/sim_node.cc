#include "tests/sim/sim_node.h"

#include <algorithm>
#include <string>
#include <utility>

namespace pando::sim {

SimNode::SimNode(const Options& options, EventQueue* events, Checker* checker, Coverage* coverage)
    : options_(options),
      events_(events),
      random_(options.seed),
      checker_(checker),
      coverage_(coverage),
      clock_(options.ahead) {}

// ---- Lives

NodeCore::Options SimNode::CoreOptions() {
  NodeCore::Options options;
  options.cache = {.key_secret = "",
                   .space_share = 0.5,
                   .collide = options_.collide,
                   .extent_pages_max = options_.extent_pages_max,
                   .page_ops = coverage_->page_ops()};
  options.slab_bytes = Bytes(options_.extents * kExtentBytes.value());
  options.first_claim = ClaimId(random_.Next() >> 1 | 1);
  return options;
}

void SimNode::Start() {
  ++lives_;
  tick_at_ = INT64_MAX;
  life_ = std::make_unique<Life>(CoreOptions(), coverage_, checker_);
}

void SimNode::Crash() {
  past_ = sums();
  life_.reset();
  inbox_.clear();
  stalled_until_ = 0;
  for (const auto& tell : on_crash) tell();
}

SimNode::Sums SimNode::sums() const {
  Sums sums = past_;
  if (!up()) return sums;
  const CoreStatus status = core().status();
  sums.pages_fetched += status.counters.peer_pages_stored;
  sums.feeds_broken += status.counters.feeds_broken;
  sums.hit_peer += status.account.hit_peer;
  for (const PeerStatus& peer : status.cluster.peers) sums.pages_bad += peer.pages_bad;
  return sums;
}

void SimNode::At(Nanos time, std::function<void()> run) {
  events_->At(time, [this, life = lives_, run = std::move(run)] {
    if (up() && life == lives_) run();
  });
}

// ---- Time

void SimNode::Stall(Nanos time) {
  stalled_until_ = std::max(stalled_until_, events_->now() + time);
  At(stalled_until_, [this] {
    if (events_->now() >= stalled_until_) Thaw();
  });
}

void SimNode::Jump(Nanos by) {
  clock_.Jump(by);
  At(events_->In(random_.Below(30)), [this] { Step(Tick{}); });
}

void SimNode::Freeze(Nanos time) {
  clock_.Freeze(events_->now(), events_->now() + time);
}

void SimNode::Thaw() {
  stalled_until_ = 0;
  for (Input& input : std::exchange(inbox_, {})) Do(std::move(input));
}

void SimNode::ScheduleTick() {
  const Nanos due = clock_.TimeOf(life_->core.next_deadline(), events_->now());
  if (due == INT64_MAX || (tick_at_ <= due && tick_at_ > events_->now())) return;
  tick_at_ = due;
  At(due, [this, due] {
    if (tick_at_ == due) tick_at_ = INT64_MAX;
    Step(Tick{});
  });
}

// ---- Peers

// A transfer's end is seen before the core acts on it: from then on the page is free for others.
void SimNode::FromPeers(Input input) {
  if (!up()) return;
  if (const auto* happened = std::get_if<TransferHappened>(&input)) Watch(happened->event);
  Step(std::move(input));
}

void SimNode::Watch(const Output& output) {
  if (const auto* offer = std::get_if<OfferPages>(&output)) {
    life_->offered[{offer->grant.high, offer->grant.low}] = life_->memory->Enter(offer->pages);
  } else if (const auto* pull = std::get_if<StartPull>(&output)) {
    const auto [it, fresh] = life_->pulled.try_emplace(pull->pull);
    checker_->Expect(fresh, "a pull began twice");
    for (const StartPull::Page& page : pull->pages) {
      it->second.push_back(life_->memory->EnterAlone(page.to));
    }
  }
}

void SimNode::Watch(const TransferEvent& event) {
  coverage_->Add(event);
  if (const auto* grant = std::get_if<GrantEnded>(&event)) {
    life_->memory->Leave(life_->offered.extract({grant->grant.high, grant->grant.low}).mapped());
  } else if (const auto* pages = std::get_if<PullPages>(&event)) {
    for (const PullPages::Page& page : pages->pages) {
      life_->memory->Leave(life_->pulled[pages->pull][page.position]);
    }
  } else if (const auto* pull = std::get_if<PullEnded>(&event)) {
    checker_->Expect(life_->pulled.erase(pull->pull) == 1, "a pull ended twice");
  }
}

void SimNode::ToSimulatedTime(Output* output) const {
  auto* ask = std::get_if<AskPeer>(output);
  if (ask != nullptr) ask->deadline = clock_.TimeOf(ask->deadline, events_->now());
  auto* pull = std::get_if<StartPull>(output);
  if (pull != nullptr) pull->deadline = clock_.TimeOf(pull->deadline, events_->now());
}

// ---- Sockets

SessionId SimNode::Open() {
  const SessionId session(++last_session_);
  life_->wires[session] = {};
  Step(SessionOpened{session});
  return session;
}

uint64_t SimNode::Delay() {
  return random_.OneIn(20) ? random_.Below(100 * options_.delay) : random_.Below(options_.delay);
}

void SimNode::Send(SessionId session, RequestBody body, Nanos deadline, OnAnswer on_answer) {
  if (!open(session)) return;
  Wire& wire = life_->wires[session];
  const uint64_t serial = ++last_serial_;
  wire.waiting[serial] = std::move(on_answer);
  wire.last_in = std::max(wire.last_in, events_->In(Delay()));
  auto request =
      std::make_shared<SessionRequest>(SessionRequest{session, serial, deadline, std::move(body)});
  At(wire.last_in, [this, request] {
    if (open(request->session)) Step(std::move(*request));
  });
}

void SimNode::Close(SessionId session) {
  if (up() && life_->wires.erase(session) > 0) Step(SessionClosed{session});
}

void SimNode::Deliver(const SendAnswer& send) {
  const auto wire = life_->wires.find(send.session);
  if (wire == life_->wires.end()) return;
  wire->second.last_out = std::max(wire->second.last_out, events_->In(Delay()));
  auto answer = std::make_shared<const SendAnswer>(send);
  At(wire->second.last_out, [this, answer] {
    const auto open = life_->wires.find(answer->session);
    if (open == life_->wires.end()) return;
    const auto waiting = open->second.waiting.extract(answer->serial);
    checker_->Expect(!waiting.empty(), "a second answer to one message");
    if (!waiting.empty() && waiting.mapped()) waiting.mapped()(answer->answer);
  });
}

// ---- Steps

void SimNode::Step(Input input) {
  if (!up()) return;
  if (events_->now() < stalled_until_) {
    inbox_.push_back(std::move(input));
  } else {
    Do(std::move(input));
  }
}

void SimNode::Do(Input input) {
  Owed owed = Expect(input);
  std::vector<Output> outputs;
  life_->core.Step(Now(), std::move(input), &outputs);
  ++steps_;
  if (steps_ % options_.check_every == 0) SelfCheck();
  ScheduleTick();
  for (Output& output : outputs) Take(std::move(output), &owed);
  CheckPaid(owed);
}

void SimNode::SelfCheck() {
  const std::string broken = life_->core.SelfCheck();
  if (!broken.empty()) checker_->Fail("step " + std::to_string(steps_) + ": " + broken);
}

void SimNode::Take(Output output, Owed* owed) {
  checker_->Add(output);
  coverage_->Add(output);
  Watch(output);
  if (const auto* send = std::get_if<SendAnswer>(&output)) {
    if (owed->answer == std::pair(send->session, send->serial)) owed->answer.reset();
    std::erase_if(life_->awaits, [&](const Await& await) { return await.serial == send->serial; });
    Deliver(*send);
  }
  if (const auto* close = std::get_if<CloseSession>(&output)) {
    At(events_->In(Delay()), [this, session = close->session] { Close(session); });
  }
  if (const auto* answer = std::get_if<AnswerPeer>(&output)) {
    if (owed->peer_answer == answer->call) owed->peer_answer.reset();
  }
  ToSimulatedTime(&output);
  if (carry) carry(std::move(output));
}

SimNode::Owed SimNode::Expect(const Input& input) {
  Owed owed;
  if (const auto* request = std::get_if<SessionRequest>(&input)) {
    if (const auto* await = std::get_if<AwaitRequest>(&request->body)) {
      life_->awaits.insert({std::max(await->until, Now()), request->session, request->serial});
    } else {
      owed.answer = {request->session, request->serial};
    }
  } else if (const auto* asks = std::get_if<PeerAsks>(&input)) {
    owed.peer_answer = asks->call;
  } else if (const auto* closed = std::get_if<SessionClosed>(&input)) {
    std::erase_if(life_->awaits, [&](const Await& a) { return a.session == closed->session; });
  }
  return owed;
}

void SimNode::CheckPaid(const Owed& owed) {
  checker_->Expect(!owed.answer, "a message was not answered in its step");
  checker_->Expect(!owed.peer_answer, "a peer's question was not answered in its step");
  if (life_->awaits.empty()) return;
  const Nanos until = life_->awaits.begin()->until;
  checker_->Expect(until > Now(), "an await was not answered by its deadline");
  checker_->Expect(life_->core.next_deadline() <= until, "nobody watches an await's deadline");
}

}  // namespace pando::sim
