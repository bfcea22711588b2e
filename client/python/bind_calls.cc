// Calls and their answers.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <new>
#include <span>
#include <string>
#include <utility>

#include "client/python/bind.h"

namespace nb = nanobind;

namespace pando::python {
namespace {

using namespace pando::client;

// Prompts are (tokens, segments, extras): converted for the call that gets them.
class PromptArguments {
 public:
  PromptArguments(nb::handle tokens, const std::vector<std::pair<std::string, uint64_t>>& segments,
                  const std::vector<std::pair<uint32_t, nb::bytes>>& extras)
      : tokens_(ToTokens(tokens)) {
    for (const auto& [scope, end] : segments) segments_.push_back({scope, end});
    for (const auto& [block, bytes] : extras) {
      extras_.push_back({block, {static_cast<const char*>(bytes.data()), bytes.size()}});
    }
  }
  Prompt view() const { return {tokens_, segments_, extras_}; }

 private:
  std::vector<uint32_t> tokens_;
  std::vector<Segment> segments_;
  std::vector<Extra> extras_;
};

using Segments = std::vector<std::pair<std::string, uint64_t>>;
using Extras = std::vector<std::pair<uint32_t, nb::bytes>>;

template <class Result>
nb::class_<Result> BindCall(nb::module_* module, nb::class_<SharedClient>* client,
                            const char* result_name, const char* call_name) {
  nb::class_<Result> result(*module, result_name);
  result.def_ro("code", &Result::code).def_ro("message", &Result::message);
  nb::class_<Call<Result>>(*module, call_name)
      .def("ready", &Call<Result>::ready)
      .def("get", [](Call<Result>& call) { return Result(call.get()); });
  client->def(
      "wait_until",
      [](SharedClient& c, Call<Result>& call, int64_t until_ns) {
        return SharedClient::Use(&c)->WaitUntil(call, until_ns);
      },
      nb::arg("call"), nb::arg("until_ns"), nb::call_guard<nb::gil_scoped_release>());
  return result;
}

void BindClaim(nb::module_* module) {
  nb::class_<Claim>(*module, "Claim")
      .def(
          "__init__",
          [](Claim* self, uint64_t boot_id, uint64_t id) {
            new (self) Claim{boot_id, id};
          },
          nb::arg("boot_id") = 0, nb::arg("id") = 0)
      .def_ro("boot_id", &Claim::boot_id)
      .def_ro("id", &Claim::id)
      .def("__bool__", [](const Claim& c) { return static_cast<bool>(c); })
      .def(
          "__eq__", [](const Claim& a, const Claim& b) { return a == b; }, nb::is_operator())
      .def("__hash__", [](const Claim& c) { return c.id ^ c.boot_id; })
      .def("__repr__",
           [](const Claim& c) {
             return "Claim(" + std::to_string(c.boot_id) + ", " + std::to_string(c.id) + ")";
           })
      .def("__getstate__", [](const Claim& c) { return std::make_pair(c.boot_id, c.id); })
      .def("__setstate__", [](Claim& self, std::pair<uint64_t, uint64_t> state) {
        new (&self) Claim{state.first, state.second};
      });
}

void BindResults(nb::module_* m, nb::class_<SharedClient>* client) {
  BindCall<AcquireResult>(m, client, "AcquireResult", "AcquireCall")
      .def_ro("claim", &AcquireResult::claim)
      .def_ro("blocks", &AcquireResult::blocks)
      .def_ro("in_flight", &AcquireResult::in_flight)
      .def_ro("ticket", &AcquireResult::ticket);
  BindCall<AwaitResult>(m, client, "AwaitResult", "AwaitCall")
      .def_ro("claim", &AwaitResult::claim)
      .def_ro("blocks", &AwaitResult::blocks)
      .def_ro("in_flight", &AwaitResult::in_flight)
      .def_ro("peer_begin", &AwaitResult::peer_from)
      .def_ro("peer_end", &AwaitResult::peer_to);
  BindCall<ProbeResult>(m, client, "ProbeResult", "ProbeCall")
      .def_ro("blocks", &ProbeResult::blocks)
      .def_ro("in_flight", &ProbeResult::in_flight);
  nb::class_<ReserveResult> reserve =
      BindCall<ReserveResult>(m, client, "ReserveResult", "ReserveCall");
  reserve.def_ro("claim", &ReserveResult::claim)
      .def_ro("begin", &ReserveResult::from)
      .def_ro("end", &ReserveResult::to)
      .def_ro("in_flight", &ReserveResult::in_flight)
      .def_ro("full", &ReserveResult::full);
  BindCall<SettleResult>(m, client, "SettleResult", "SettleCall");
  nb::class_<EndResult>(*m, "EndResult")
      .def_ro("code", &EndResult::code)
      .def_ro("message", &EndResult::message);
}

Call<AcquireResult> Acquire(SharedClient& c, uint64_t request, nb::handle tokens,
                            uint64_t engine_hit_tokens, int64_t claim_deadline_ns,
                            int64_t deadline_ns, Intent intent, bool again,
                            const Segments& segments, const Extras& extras) {
  const PromptArguments prompt(tokens, segments, extras);
  return SharedClient::Use(&c)->StartAcquire(request, prompt.view(), engine_hit_tokens,
                                             claim_deadline_ns, deadline_ns, intent,
                                             again ? Account::kAgain : Account::kCounted);
}

Call<ProbeResult> Probe(SharedClient& c, nb::handle tokens, int64_t deadline_ns,
                        const Segments& segments, const Extras& extras) {
  const PromptArguments prompt(tokens, segments, extras);
  return SharedClient::Use(&c)->StartProbe(prompt.view(), deadline_ns);
}

Call<ReserveResult> Reserve(SharedClient& c, uint64_t request, nb::handle append_tokens,
                            uint32_t begin, uint32_t end, int64_t claim_deadline_ns,
                            int64_t deadline_ns) {
  return SharedClient::Use(&c)->StartReserve(request, {}, ToTokens(append_tokens), begin, end,
                                             claim_deadline_ns, deadline_ns);
}

Call<ReserveResult> ReservePrompt(SharedClient& c, nb::handle tokens, uint32_t begin, uint32_t end,
                                  int64_t claim_deadline_ns, int64_t deadline_ns,
                                  const Segments& segments, const Extras& extras) {
  const PromptArguments prompt(tokens, segments, extras);
  return SharedClient::Use(&c)->StartReserve(0, prompt.view(), {}, begin, end, claim_deadline_ns,
                                             deadline_ns);
}

Call<SettleResult> Settle(SharedClient& c, uint64_t request, int64_t deadline_ns, uint64_t engine,
                          uint64_t host, uint64_t failed, uint64_t prefill_micros) {
  Used used;
  used.engine = engine;
  used.host = host;
  used.failed = failed;
  used.prefill_micros = prefill_micros;
  return SharedClient::Use(&c)->StartSettle(request, used, deadline_ns);
}

}  // namespace

void BindCalls(nb::module_* module, nb::class_<SharedClient>* client) {
  BindClaim(module);
  BindResults(module, client);
  client
      ->def("start_acquire", &Acquire, nb::arg("request"), nb::arg("tokens"), nb::kw_only(),
            nb::arg("engine_hit_tokens") = 0, nb::arg("claim_deadline_ns") = 0,
            nb::arg("deadline_ns"), nb::arg("intent") = Intent::kLook, nb::arg("again") = false,
            nb::arg("segments") = Segments{}, nb::arg("extras") = Extras{})
      .def(
          "start_await",
          [](SharedClient& c, uint64_t ticket, int64_t until_ns, int64_t deadline_ns) {
            return SharedClient::Use(&c)->StartAwait(ticket, until_ns, deadline_ns);
          },
          nb::arg("ticket"), nb::kw_only(), nb::arg("until_ns"), nb::arg("deadline_ns"))
      .def("start_probe", &Probe, nb::arg("tokens"), nb::kw_only(), nb::arg("deadline_ns"),
           nb::arg("segments") = Segments{}, nb::arg("extras") = Extras{})
      .def("start_reserve", &Reserve, nb::arg("request"), nb::arg("append_tokens"), nb::kw_only(),
           nb::arg("begin"), nb::arg("end"), nb::arg("claim_deadline_ns") = 0,
           nb::arg("deadline_ns"))
      .def("start_reserve_prompt", &ReservePrompt, nb::arg("tokens"), nb::kw_only(),
           nb::arg("begin"), nb::arg("end"), nb::arg("claim_deadline_ns") = 0,
           nb::arg("deadline_ns"), nb::arg("segments") = Segments{}, nb::arg("extras") = Extras{})
      .def("start_settle", &Settle, nb::arg("request"), nb::kw_only(), nb::arg("deadline_ns"),
           nb::arg("engine") = 0, nb::arg("host") = 0, nb::arg("failed") = 0,
           nb::arg("prefill_micros") = 0)
      .def(
          "abort",
          [](SharedClient& c, const std::vector<Claim>& claims) {
            SharedClient::Use(&c)->Abort(claims);
          },
          nb::arg("claims"));
}

}  // namespace pando::python
