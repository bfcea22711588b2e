#include "client/python/bind.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

namespace nb = nanobind;

namespace pando::python {
namespace {

using client::Code;
using client::Counters;
using client::Intent;
using client::Options;
using client::Role;
using client::State;

void BindEnums(nb::module_* module) {
  nb::enum_<Role>(*module, "Role")
      .value("SCHEDULER", Role::kScheduler)
      .value("WORKER", Role::kWorker)
      .value("BOTH", Role::kBoth);
  nb::enum_<State>(*module, "State")
      .value("DISCONNECTED", State::kDisconnected)
      .value("ATTACHING", State::kAttaching)
      .value("ATTACHED", State::kAttached)
      .value("ABSENT", State::kAbsent)
      .value("REFUSED", State::kRefused)
      .value("DRAINING", State::kDraining)
      .value("FORKED", State::kForked)
      .value("CLOSED", State::kClosed);
  nb::enum_<Code>(*module, "Code")
      .value("OK", Code::kOk)
      .value("INVALID", Code::kInvalid)
      .value("LIMIT", Code::kLimit)
      .value("UNKNOWN", Code::kUnknown)
      .value("EXPIRED", Code::kExpired)
      .value("UNAVAILABLE", Code::kUnavailable)
      .value("LOST", Code::kLost);
  nb::enum_<Intent>(*module, "Intent")
      .value("LOOK", Intent::kLook)
      .value("COMPUTE", Intent::kCompute);
}

void BindCounters(nb::module_* module) {
  nb::class_<Counters>(*module, "Counters")
      .def_ro("calls", &Counters::calls)
      .def_ro("calls_refused", &Counters::calls_refused)
      .def_ro("calls_lost", &Counters::calls_lost)
      .def_ro("calls_lost_full", &Counters::calls_lost_full)
      .def_ro("given_back", &Counters::given_back)
      .def_ro("attaches", &Counters::attaches)
      .def_ro("sessions_lost", &Counters::sessions_lost);
}

using Fields = std::vector<std::pair<std::string, std::string>>;

void Make(SharedClient* self, std::string socket, std::string replica_key, Role role,
          uint32_t shard, uint32_t world_size, uint32_t block_tokens, uint64_t page_bytes,
          Fields fields, uint64_t prefill_tokens_per_s, int64_t attach_timeout_ns,
          int64_t retry_min_ns, int64_t retry_max_ns) {
  Options options;
  options.socket = std::move(socket);
  options.replica_key = std::move(replica_key);
  options.role = role;
  options.shard = shard;
  options.world_size = world_size;
  options.block_tokens = block_tokens;
  options.page_bytes = page_bytes;
  options.fields = std::move(fields);
  options.prefill_tokens_per_s = prefill_tokens_per_s;
  options.attach_timeout_ns = attach_timeout_ns;
  options.retry_min_ns = retry_min_ns;
  options.retry_max_ns = retry_max_ns;
  new (self) SharedClient(std::move(options));
}

void BindClient(nb::class_<SharedClient>* client) {
  const Options defaults;
  client
      ->def("__init__", &Make, nb::arg("socket"), nb::arg("replica_key"), nb::kw_only(),
            nb::arg("role") = Role::kBoth, nb::arg("shard") = 0, nb::arg("world_size") = 1,
            nb::arg("block_tokens") = 0, nb::arg("page_bytes") = 0, nb::arg("fields") = Fields{},
            nb::arg("prefill_tokens_per_s") = 0,
            nb::arg("attach_timeout_ns") = defaults.attach_timeout_ns,
            nb::arg("retry_min_ns") = defaults.retry_min_ns,
            nb::arg("retry_max_ns") = defaults.retry_max_ns)
      .def_prop_ro("state", [](SharedClient& c) { return SharedClient::Use(&c)->state(); })
      .def_prop_ro("last_error",
                   [](SharedClient& c) { return SharedClient::Use(&c)->last_error(); })
      .def_prop_ro("boot_id", [](SharedClient& c) { return SharedClient::Use(&c)->boot_id(); })
      .def_prop_ro("session", [](SharedClient& c) { return SharedClient::Use(&c)->session(); })
      .def_prop_ro("counters",
                   [](SharedClient& c) { return Counters(SharedClient::Use(&c)->counters()); })
      .def("fileno", [](SharedClient& c) { return SharedClient::Use(&c)->fd(); })
      .def("wants_write", [](SharedClient& c) { return SharedClient::Use(&c)->wants_write(); })
      .def("poll", [](SharedClient& c) { SharedClient::Use(&c)->Poll(); })
      .def("flush", [](SharedClient& c) { SharedClient::Use(&c)->Flush(); })
      .def("close", [](SharedClient& c) { SharedClient::Use(&c).Close(); })
      .def(
          "wait_attached",
          [](SharedClient& c, int64_t deadline_ns) {
            return SharedClient::Use(&c)->WaitAttached(deadline_ns);
          },
          nb::arg("deadline_ns"), nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

std::vector<uint32_t> ToTokens(nb::handle tokens) {
  std::vector<uint32_t> result;
  if (PyList_Check(tokens.ptr())) {
    const Py_ssize_t size = PyList_GET_SIZE(tokens.ptr());
    result.reserve(static_cast<size_t>(size));
    for (Py_ssize_t i = 0; i < size; ++i) {
      const unsigned long token = PyLong_AsUnsignedLong(PyList_GET_ITEM(tokens.ptr(), i));
      if (token > UINT32_MAX) {  // also -1, the sign of an error
        if (PyErr_Occurred()) throw nb::python_error();
        throw nb::value_error("a token of more than 32 bits found");
      }
      result.push_back(static_cast<uint32_t>(token));
    }
    return result;
  }
  Py_buffer view;
  if (PyObject_GetBuffer(tokens.ptr(), &view, PyBUF_CONTIG_RO | PyBUF_FORMAT) != 0) {
    throw nb::python_error();
  }
  const std::string format = view.format != nullptr ? view.format : "B";
  const bool fits = view.itemsize == sizeof(uint32_t) && (format == "I" || format == "i");
  if (fits) {
    const auto* begin = static_cast<const uint32_t*>(view.buf);
    result.assign(begin, begin + view.len / view.itemsize);
  }
  PyBuffer_Release(&view);
  if (!fits) throw nb::type_error("tokens: expected a list of ints, or a buffer of 32-bit ones");
  return result;
}

}  // namespace pando::python

NB_MODULE(_pando, module) {
  using namespace pando::python;
  module.doc() = "The C++ client of a pando-node (client/client.h).";
  module.def("now_ns", &pando::client::NowNanos, "CLOCK_MONOTONIC, in nanoseconds.");
  BindEnums(&module);
  BindCounters(&module);
  nb::class_<SharedClient> client(module, "Client");
  BindClient(&client);
  BindCalls(&module, &client);
  BindCopy(&module, &client);
}
