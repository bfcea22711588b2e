#include "tests/sim/sim_node.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace pando::sim {

SimNode::SimNode(const Options& options, EventQueue* events, Random* random, Checker* checker)
    : events_(events),
      random_(random),
      checker_(checker),
      core_({.cache = {.key_secret = "", .space_share = 0.5, .collide = options.collide},
             .slab_bytes = Bytes(options.extents * kExtentBytes.value())}),
      memory_(checker),
      extents_(options.extents),
      check_every_(options.check_every) {}

void SimNode::AddExtents() {
  for (uint32_t i = 0; i < extents_; ++i) Step(ExtentReady{ExtentId(i)});
}

// A transfer's end is seen before the core acts on it: from then on the page is free for others.
void SimNode::FromPeers(Input input) {
  if (const auto* happened = std::get_if<TransferHappened>(&input)) Watch(happened->event);
  Step(std::move(input));
}

void SimNode::Watch(const Output& output) {
  if (const auto* offer = std::get_if<OfferPages>(&output)) {
    offered_[{offer->grant.high, offer->grant.low}] = memory_.Enter(offer->pages);
  } else if (const auto* pull = std::get_if<StartPull>(&output)) {
    for (const StartPull::Page& page : pull->pages) {
      pulled_[pull->pull].push_back(memory_.EnterAlone(page.to));
    }
  }
}

void SimNode::Watch(const TransferEvent& event) {
  if (const auto* grant = std::get_if<GrantEnded>(&event)) {
    memory_.Leave(offered_.extract({grant->grant.high, grant->grant.low}).mapped());
  } else if (const auto* pages = std::get_if<PullPages>(&event)) {
    for (const PullPages::Page& page : pages->pages) {
      memory_.Leave(pulled_[pages->pull][page.position]);
    }
  } else if (const auto* pull = std::get_if<PullEnded>(&event)) {
    pulled_.erase(pull->pull);
  }
}

SessionId SimNode::Open() {
  const SessionId session(++last_session_);
  wires_[session] = {};
  Step(SessionOpened{session});
  return session;
}

void SimNode::Send(SessionId session, RequestBody body, Nanos deadline, OnAnswer on_answer) {
  auto wire = wires_.find(session);
  if (wire == wires_.end()) return;
  const uint64_t serial = ++last_serial_;
  wire->second.waiting[serial] = std::move(on_answer);
  wire->second.last_in = std::max(wire->second.last_in, events_->In(Delay()));
  SessionRequest request{session, serial, deadline, std::move(body)};
  events_->At(wire->second.last_in, [this, request = std::move(request)] {
    if (wires_.contains(request.session)) Step(request);
  });
}

void SimNode::Close(SessionId session) {
  if (wires_.erase(session) > 0) Step(SessionClosed{session});
}

void SimNode::Exit(SessionId session) {
  Step(ProcessExited{session});
}

void SimNode::Step(Input input) {
  std::vector<Output> outputs;
  core_.Step(events_->now(), std::move(input), &outputs);
  ++steps_;
  if (steps_ % check_every_ == 0) {
    const std::string broken = core_.SelfCheck();
    if (!broken.empty()) checker_->Fail("step " + std::to_string(steps_) + ": " + broken);
  }
  ScheduleTick();
  for (Output& output : outputs) {
    checker_->Add(output);
    Watch(output);
    if (const auto* send = std::get_if<SendAnswer>(&output)) Deliver(*send);
    if (const auto* close = std::get_if<CloseSession>(&output)) {
      events_->After(Delay(), [this, session = close->session] { Close(session); });
    }
    if (carry) carry(std::move(output));
  }
}

void SimNode::Deliver(const SendAnswer& send) {
  auto wire = wires_.find(send.session);
  if (wire == wires_.end()) return;
  wire->second.last_out = std::max(wire->second.last_out, events_->In(Delay()));
  events_->At(wire->second.last_out, [this, send] {
    auto open = wires_.find(send.session);
    if (open == wires_.end()) return;
    auto waiting = open->second.waiting.extract(send.serial);
    checker_->Expect(!waiting.empty(), "a second answer to one message");
    if (!waiting.empty() && waiting.mapped()) waiting.mapped()(send.answer);
  });
}

void SimNode::ScheduleTick() {
  const Nanos due = core_.next_deadline();
  if (due == INT64_MAX || (tick_at_ <= due && tick_at_ > events_->now())) return;
  tick_at_ = due;
  events_->At(due, [this, due] {
    if (tick_at_ == due) tick_at_ = INT64_MAX;
    Step(Tick{});
  });
}

}  // namespace pando::sim
