#include "tests/sim/page_memory.h"

#include <algorithm>

#include "transfer/memory/page_copy.h"

namespace pando::sim {

uint64_t Checksum(const Stamp& stamp) {
  return PageChecksum(std::as_bytes(std::span(&stamp, 1)));
}

PageMemory::Accessor PageMemory::EnterAlone(PageId page) {
  checker_->Expect(pages_[page].accessors.empty(), "a page is pulled while another may touch it");
  const Accessor accessor = Enter({&page, 1});
  pages_[page].alone = true;
  return accessor;
}

PageMemory::Accessor PageMemory::Enter(std::span<const PageId> pages) {
  const Accessor accessor = ++last_;
  pages_of_[accessor].assign(pages.begin(), pages.end());
  for (PageId id : pages) {
    Page& page = pages_[id];
    checker_->Expect(!page.alone, "a page is touched while it may be pulled");
    page.accessors.push_back(accessor);
  }
  return accessor;
}

void PageMemory::Leave(Accessor accessor) {
  const auto it = pages_of_.find(accessor);
  checker_->Expect(it != pages_of_.end(), "a copy ended twice (a fault of the simulator)");
  if (it == pages_of_.end()) return;
  for (PageId id : it->second) {
    Page& page = pages_[id];
    std::erase(page.accessors, accessor);
    if (page.accessors.empty()) page.alone = false;
  }
  pages_of_.erase(it);
}

bool PageMemory::Has(const Page& page, Accessor accessor) {
  return std::find(page.accessors.begin(), page.accessors.end(), accessor) != page.accessors.end();
}

void PageMemory::Write(Accessor accessor, PageId id, const Stamp& stamp) {
  Page& page = pages_[id];
  checker_->Expect(Has(page, accessor), "a page written without a hold");
  checker_->Expect(page.accessors.size() == 1, "a page written while another may touch it");
  page.stamp = stamp;
}

Stamp PageMemory::Read(Accessor accessor, PageId id) {
  const Page& page = pages_[id];
  checker_->Expect(Has(page, accessor), "a page read without a hold");
  return page.stamp;
}

}  // namespace pando::sim
