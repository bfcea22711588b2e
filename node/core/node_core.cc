#include "node/core/node_core.h"

#include <utility>

#include "node/core/router.h"

namespace pando {

struct NodeCore::Impl {
  Router router;
};

NodeCore::NodeCore(const Options& options, StepListener* steps)
    : impl_(new Impl{Router(options, steps)}) {}

NodeCore::~NodeCore() = default;

void NodeCore::Step(Nanos now, Input input, std::vector<Output>* outputs) {
  impl_->router.Step(now, std::move(input), outputs);
}

Nanos NodeCore::next_deadline() const {
  return impl_->router.next_deadline();
}

CoreStatus NodeCore::status(Nanos now) const {
  return impl_->router.status(now);
}

const PrefixCache& NodeCore::cache() const {
  return impl_->router.cache();
}

std::vector<std::string> NodeCore::PeersHolding(uint64_t key) const {
  return impl_->router.PeersHolding(key);
}

std::string NodeCore::SelfCheck() const {
  return impl_->router.SelfCheck();
}

}  // namespace pando
