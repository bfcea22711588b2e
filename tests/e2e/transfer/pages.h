// The pages that owners and requesters of these tests agree on without talking: page i holds bytes
// that follow from i % kDistinct. An owner keeps only the distinct ones.
#ifndef PANDO_TESTS_E2E_TRANSFER_PAGES_H_
#define PANDO_TESTS_E2E_TRANSFER_PAGES_H_

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "transfer/engine.h"
#include "transfer/memory/page_copy.h"

namespace pando::e2e {

inline GrantId GrantOf(uint64_t number) {
  return {17, number};
}
inline constexpr uint32_t kDistinct = 4;

class Pages {
 public:
  Pages(uint32_t count, size_t bytes) : count_(count), bytes_(bytes) {
    distinct_.assign(kDistinct, std::vector<std::byte>(bytes));
    Fill();
    for (const auto& page : distinct_) checksums_.push_back(PageChecksum(page));
  }

  // ---- An owner's
  void Fill() {
    for (uint32_t i = 0; i < kDistinct; ++i) {
      for (size_t at = 0; at < bytes_; ++at) {
        distinct_[i][at] = static_cast<std::byte>(at * 31 + i * 7);
      }
    }
  }
  // What an owner does with memory that is its own again: nobody may read it as these pages now.
  void Spoil() {
    for (auto& page : distinct_) std::fill(page.begin(), page.end(), std::byte{0xdd});
  }
  Offer ToOffer(uint64_t grant) const {
    Offer offer{GrantOf(grant), {}};
    for (uint32_t i = 0; i < count_; ++i) offer.pages.push_back({distinct_[i % kDistinct]});
    return offer;
  }

  // ---- A requester's
  Pull ToPull(uint64_t id, const std::string& address, Nanos deadline, uint64_t grant) {
    to_.resize(count_ * bytes_);
    Pull pull{id, address, GrantOf(grant), deadline, {}};
    for (uint32_t i = 0; i < count_; ++i) {
      pull.pages.push_back({i, checksums_[i % kDistinct], Slot(i)});
    }
    return pull;
  }
  bool IsRight(uint32_t i) {
    return std::memcmp(Slot(i).data(), distinct_[i % kDistinct].data(), bytes_) == 0;
  }
  // What a requester does with memory that is its own again: nobody may write it now.
  void Stamp() { std::fill(to_.begin(), to_.end(), std::byte{0x11}); }
  bool IsStamped() const {
    return std::all_of(to_.begin(), to_.end(), [](std::byte is) { return is == std::byte{0x11}; });
  }

 private:
  std::span<std::byte> Slot(uint32_t i) { return std::span(to_).subspan(i * bytes_, bytes_); }

  const uint32_t count_;
  const size_t bytes_;
  std::vector<std::vector<std::byte>> distinct_;
  std::vector<uint64_t> checksums_;
  std::vector<std::byte> to_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_TRANSFER_PAGES_H_
