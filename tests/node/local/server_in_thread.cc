#include "tests/node/local/server_in_thread.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "node/local/clock.h"
#include "node/local/codec.h"
#include "node/local/listener.h"
#include "radix/base/check.h"

namespace pando::local {
namespace {

constexpr std::chrono::milliseconds kWait{10'000};
constexpr useconds_t kPollMicros = 1000;

std::string MakeFolder() {
  std::string folder = "/tmp/pando-test-XXXXXX";
  PANDO_CHECK(::mkdtemp(folder.data()) != nullptr) << folder;
  return folder;
}

NodeCore::Options CoreOptions(uint32_t extents) {
  NodeCore::Options options;
  options.slab_bytes = Bytes(extents * kExtentBytes.value());
  return options;
}

}  // namespace

ServerInThread::ServerInThread(uint32_t extents, SessionServer::Options options)
    : folder_(MakeFolder()), path_(folder_ + "/node.sock"), core_(CoreOptions(extents)) {
  QuietParser();
  options.boot_id = BootId(kBootId);
  absl::StatusOr<Listener> listener = Listener::Bind(path_);
  PANDO_CHECK(listener.ok()) << listener.status().ToString();
  const auto log = [this](const LogLine& line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(line);
  };
  server_ = std::make_unique<SessionServer>(options, &loop_, &core_, *std::move(listener), log);
  for (uint32_t i = 0; i < extents; ++i) {
    extents_.emplace_back(::memfd_create("pando-test", MFD_CLOEXEC));
    PANDO_CHECK(::ftruncate(extents_.back().get(), kExtentBytes.value()) == 0);
    server_->AddExtent(ExtentId(i), extents_.back().get());
    server_->Deliver(ExtentReady{ExtentId(i)});
  }
  steps_ = core_.status().counters.steps;
  server_->SetAfterTurn([this] {
    const uint64_t steps = core_.status().counters.steps;
    steps_in_one_turn_ = std::max(steps_in_one_turn_, steps - std::exchange(steps_, steps));
  });
  thread_ = std::thread([this] { loop_.Run(); });
}

ServerInThread::~ServerInThread() {
  loop_.Post([this] { loop_.Stop(); });
  thread_.join();
  server_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

CoreStatus ServerInThread::status() {
  CoreStatus status;
  PANDO_CHECK(loop_.RunAndWait([&] { status = core_.status(); }, kWait)) << "the loop is stuck";
  return status;
}

uint64_t ServerInThread::StepsInOneTurn() {
  uint64_t steps = 0;
  PANDO_CHECK(loop_.RunAndWait([&] { steps = steps_in_one_turn_; }, kWait)) << "the loop is stuck";
  return steps;
}

std::string ServerInThread::SelfCheck() {
  std::string broken;
  PANDO_CHECK(loop_.RunAndWait([&] { broken = core_.SelfCheck(); }, kWait)) << "the loop is stuck";
  return broken;
}

bool ServerInThread::WaitFor(const std::function<bool(const CoreStatus&)>& good) {
  const Nanos deadline = Now() + std::chrono::nanoseconds(kWait).count();
  while (!good(status())) {
    if (Now() >= deadline) return false;
    ::usleep(kPollMicros);
  }
  return true;
}

size_t ServerInThread::Logged(const std::string& event) {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(
      lines_.begin(), lines_.end(), [&](const LogLine& line) { return line.event == event; }));
}

}  // namespace pando::local
