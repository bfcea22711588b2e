// Copies of whole claims, and holds for who copies page by page.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>

#include "client/python/bind.h"
#include "client/python/copy_job.h"
#include "client/python/copy_thread.h"
#include "client/python/kv_layout.h"

namespace nb = nanobind;

namespace pando::python {
namespace {

using client::Claim;
using client::Code;
using client::EndResult;
using client::Hold;

constexpr int64_t kCallNanos = 1'000'000'000;  // what the node may take, unless said otherwise

// What a page is copied to or from: objects with a buffer, or (address, bytes). Holds the buffers
// until the copy is done.
class Pieces {
 public:
  Pieces(const nb::sequence& pieces, bool writable) {
    views_.reserve(nb::len(pieces));
    try {
      for (const nb::handle piece : pieces) Add(piece, writable);
    } catch (...) {
      Release();
      throw;
    }
  }
  Pieces(const Pieces&) = delete;
  Pieces& operator=(const Pieces&) = delete;
  ~Pieces() { Release(); }

  std::vector<std::span<std::byte>> spans;

 private:
  void Add(nb::handle piece, bool writable) {
    if (PyTuple_Check(piece.ptr())) {
      const auto [address, bytes] = nb::cast<std::tuple<uint64_t, uint64_t>>(piece);
      spans.emplace_back(reinterpret_cast<std::byte*>(address), bytes);
      return;
    }
    Py_buffer view;
    if (PyObject_GetBuffer(piece.ptr(), &view, writable ? PyBUF_CONTIG : PyBUF_CONTIG_RO) != 0) {
      throw nb::python_error();
    }
    views_.push_back(view);
    spans.emplace_back(static_cast<std::byte*>(view.buf), static_cast<size_t>(view.len));
  }
  void Release() {
    for (Py_buffer& view : views_) PyBuffer_Release(&view);
    views_.clear();
  }

  std::vector<Py_buffer> views_;
};

bool Load(Hold& hold, uint32_t page, const nb::sequence& list) {
  const Pieces pieces(list, /*writable=*/true);
  const nb::gil_scoped_release release;
  return hold.Load(page, pieces.spans);
}

bool Store(Hold& hold, uint32_t page, const nb::sequence& list) {
  const Pieces pieces(list, /*writable=*/false);
  const nb::gil_scoped_release release;
  const std::vector<std::span<const std::byte>> sources(pieces.spans.begin(), pieces.spans.end());
  return hold.Store(page, sources);
}

// One claim's: with a code that is not OK the hold is empty.
std::tuple<Code, std::string, Hold> Begin(SharedClient& c, const Claim& claim,
                                          int64_t deadline_ns) {
  const SharedClient::Use use(&c);
  auto call = use->StartBegin({&claim, 1}, deadline_ns);
  client::BeginResult& begun = use->Wait(call);
  const Code code = begun.code == Code::kOk ? begun.codes.at(0) : begun.code;
  Hold hold;
  if (code == Code::kOk) hold = std::move(begun.holds.at(0));
  return {code, begun.message, std::move(hold)};
}

EndResult End(SharedClient& c, Hold& hold, int64_t deadline_ns) {
  const SharedClient::Use use(&c);
  auto call = use->StartEnd(std::move(hold), deadline_ns);
  return use->Wait(call);
}

void MakeLayout(KvLayout* self, const std::vector<std::tuple<uint64_t, uint64_t, uint64_t>>& list,
                uint64_t blocks) {
  std::vector<KvPiece> pieces;
  for (const auto& [base, stride, bytes] : list) pieces.push_back({base, stride, bytes});
  const std::string wrong = KvLayout::Check(pieces, blocks);
  if (!wrong.empty()) throw nb::value_error(wrong.c_str());
  new (self) KvLayout(std::move(pieces), blocks);
}

void MakeJob(CopyJob* self, const Claim& claim, std::shared_ptr<KvLayout> layout,
             uint32_t first_block, std::vector<uint32_t> blocks) {
  for (const uint32_t block : blocks) {
    if (block >= layout->blocks()) throw nb::index_error("a block behind the layout's end");
  }
  new (self) CopyJob(claim, std::move(layout), first_block, std::move(blocks));
}

void BindHold(nb::module_* module, nb::class_<SharedClient>* client) {
  nb::class_<Hold>(*module, "Hold")
      .def_prop_ro("claim", &Hold::claim)
      .def_prop_ro("store_pages", &Hold::store)
      .def_prop_ro("first_block", &Hold::first_block)
      .def_prop_ro("pages", &Hold::pages)
      .def_prop_ro("page_bytes", &Hold::page_bytes)
      .def_prop_ro("live", &Hold::live)
      .def("stop", &Hold::Stop)
      .def("load", &Load, nb::arg("page"), nb::arg("pieces"))
      .def("store", &Store, nb::arg("page"), nb::arg("pieces"));
  client
      ->def("begin", &Begin, nb::arg("claim"), nb::kw_only(), nb::arg("deadline_ns"),
            nb::call_guard<nb::gil_scoped_release>())
      .def("end", &End, nb::arg("hold"), nb::kw_only(), nb::arg("deadline_ns"),
           nb::call_guard<nb::gil_scoped_release>());
}

void MakeThread(CopyThread* self, std::string socket, std::string replica_key, uint32_t shard,
                uint32_t world_size, uint64_t page_bytes,
                std::vector<std::pair<std::string, std::string>> fields, int64_t copy_ns,
                int64_t call_ns) {
  client::Options options;
  options.socket = std::move(socket);
  options.replica_key = std::move(replica_key);
  options.role = client::Role::kWorker;
  options.shard = shard;
  options.world_size = world_size;
  options.page_bytes = page_bytes;
  options.fields = std::move(fields);
  new (self) CopyThread(std::move(options), copy_ns, call_ns);
}

void Submit(CopyThread& thread, uint64_t tag, std::shared_ptr<CopyJob> job, bool load) {
  if (!thread.Submit(tag, std::move(job), load)) {
    throw std::runtime_error(thread.last_error());
  }
}

void BindThread(nb::module_* module) {
  nb::class_<EndedCopy>(*module, "EndedCopy")
      .def_ro("tag", &EndedCopy::tag)
      .def_ro("result", &EndedCopy::result)
      .def_ro("in_all_ns", &EndedCopy::in_all_ns);
  nb::class_<CopyThread>(*module, "CopyThread")
      .def("__init__", &MakeThread, nb::arg("socket"), nb::arg("replica_key"), nb::kw_only(),
           nb::arg("shard"), nb::arg("world_size"), nb::arg("page_bytes"), nb::arg("fields"),
           nb::arg("copy_ns"), nb::arg("call_ns"))
      .def_prop_ro("state", &CopyThread::state)
      .def_prop_ro("last_error", &CopyThread::last_error)
      .def("submit", &Submit, nb::arg("tag"), nb::arg("job"), nb::kw_only(), nb::arg("load"))
      .def("take_ended", &CopyThread::TakeEnded)
      .def("close", &CopyThread::Close, nb::call_guard<nb::gil_scoped_release>());
}

}  // namespace

void BindCopy(nb::module_* module, nb::class_<SharedClient>* client) {
  BindHold(module, client);
  nb::class_<KvLayout>(*module, "KvLayout")
      .def("__init__", &MakeLayout, nb::arg("pieces"), nb::arg("blocks"))
      .def_prop_ro("blocks", &KvLayout::blocks)
      .def(
          "self_test",
          [](const KvLayout& layout, uint64_t from, uint64_t to) {
            if (from >= layout.blocks() || to >= layout.blocks() || from == to) {
              throw nb::index_error("expected two blocks of the layout");
            }
            return layout.SelfTest(from, to);
          },
          nb::arg("source"), nb::arg("target"))
      .def_prop_ro("pieces", &KvLayout::pieces)
      .def_prop_ro("page_bytes", &KvLayout::page_bytes);
  nb::class_<CopyResult>(*module, "CopyResult")
      .def_ro("code", &CopyResult::code)
      .def_ro("message", &CopyResult::message)
      .def_ro("store", &CopyResult::store)
      .def_ro("stopped", &CopyResult::stopped)
      .def_ro("pages", &CopyResult::pages)
      .def_ro("bad", &CopyResult::bad)
      .def_ro("bytes", &CopyResult::bytes)
      .def_ro("begin_ns", &CopyResult::begin_ns)
      .def_ro("copy_ns", &CopyResult::copy_ns)
      .def_ro("copy_cpu_ns", &CopyResult::copy_cpu_ns)
      .def_ro("end_code", &CopyResult::end_code)
      .def("good", &CopyResult::good, nb::arg("wanted"));
  nb::class_<CopyJob>(*module, "CopyJob")
      .def("__init__", &MakeJob, nb::arg("claim"), nb::arg("layout"), nb::arg("first_block"),
           nb::arg("blocks"))
      .def_prop_ro("claim", &CopyJob::claim)
      .def_prop_ro("wanted", &CopyJob::wanted)
      .def(
          "run",
          [](CopyJob& job, SharedClient& c, int64_t deadline_ns, int64_t call_ns) {
            return job.Run(SharedClient::Use(&c).get(), deadline_ns, call_ns);
          },
          nb::arg("client"), nb::kw_only(), nb::arg("deadline_ns"), nb::arg("call_ns") = kCallNanos,
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "execute",
          [](CopyJob& job, SharedClient& c, int64_t deadline_ns, int64_t call_ns) {
            return job.Execute(SharedClient::Use(&c).get(), deadline_ns, call_ns);
          },
          nb::arg("client"), nb::kw_only(), nb::arg("deadline_ns"), nb::arg("call_ns") = kCallNanos,
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "finish",
          [](CopyJob& job, SharedClient& c, int64_t deadline_ns) {
            return job.Finish(SharedClient::Use(&c).get(), deadline_ns);
          },
          nb::arg("client"), nb::kw_only(), nb::arg("deadline_ns"),
          nb::call_guard<nb::gil_scoped_release>())
      .def("stop", &CopyJob::Stop, nb::call_guard<nb::gil_scoped_release>());
  BindThread(module);
}

}  // namespace pando::python
