#include "tests/sim/page_memory.h"

#include <algorithm>

#include "transfer/memory/page_copy.h"

namespace pando::sim {

uint64_t Checksum(const Stamp& stamp) {
  return PageChecksum(std::as_bytes(std::span(&stamp, 1)));
}

PageMemory::Accessor PageMemory::EnterAlone(PageId page) {
  checker_->Expect(accessors_of_[page].empty(), "a page is pulled while another may touch it");
  const Accessor accessor = Enter({&page, 1});
  alone_.insert(page);
  return accessor;
}

PageMemory::Accessor PageMemory::Enter(std::span<const PageId> pages) {
  const Accessor accessor = ++last_;
  pages_of_[accessor].assign(pages.begin(), pages.end());
  for (PageId page : pages) {
    checker_->Expect(!alone_.contains(page), "a page is touched while it may be pulled");
    accessors_of_[page].push_back(accessor);
  }
  return accessor;
}

void PageMemory::Leave(Accessor accessor) {
  auto it = pages_of_.find(accessor);
  checker_->Expect(it != pages_of_.end(), "a copy ended twice (a fault of the simulator)");
  if (it == pages_of_.end()) return;
  for (PageId page : it->second) {
    std::erase(accessors_of_[page], accessor);
    if (accessors_of_[page].empty()) alone_.erase(page);
  }
  pages_of_.erase(it);
}

bool PageMemory::Has(Accessor accessor, PageId page) const {
  auto it = accessors_of_.find(page);
  return it != accessors_of_.end() &&
         std::find(it->second.begin(), it->second.end(), accessor) != it->second.end();
}

void PageMemory::Write(Accessor accessor, PageId page, const Stamp& stamp) {
  checker_->Expect(Has(accessor, page), "a page written without a hold");
  checker_->Expect(accessors_of_[page].size() == 1, "a page written while another may touch it");
  stamps_[page] = stamp;
}

Stamp PageMemory::Read(Accessor accessor, PageId page) const {
  checker_->Expect(Has(accessor, page), "a page read without a hold");
  auto it = stamps_.find(page);
  return it == stamps_.end() ? Stamp{} : it->second;
}

}  // namespace pando::sim
