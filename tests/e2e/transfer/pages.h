// The pages that owners and requesters of these tests agree on without talking: page i holds bytes
// that follow from i % kDistinct. An owner keeps only the distinct ones.
#ifndef PANDO_TESTS_E2E_TRANSFER_PAGES_H_
#define PANDO_TESTS_E2E_TRANSFER_PAGES_H_

#include <string>
#include <vector>

#include "transfer/engine.h"
#include "transfer/memory/page_copy.h"

namespace pando::e2e {

inline constexpr GrantId kGrant{17, 4};
inline constexpr uint32_t kDistinct = 4;

class Pages {
 public:
  Pages(uint32_t count, size_t bytes) : count_(count), bytes_(bytes) {
    for (uint32_t i = 0; i < kDistinct; ++i) {
      std::vector<std::byte> page(bytes);
      for (size_t at = 0; at < bytes; ++at) page[at] = static_cast<std::byte>(at * 31 + i * 7);
      distinct_.push_back(std::move(page));
    }
  }

  Offer ToOffer() const {
    Offer offer{kGrant, {}};
    for (uint32_t i = 0; i < count_; ++i) offer.pages.push_back({distinct_[i % kDistinct]});
    return offer;
  }
  Pull ToPull(uint64_t id, const std::string& address, Nanos deadline) {
    to_.resize(count_ * bytes_);
    Pull pull{id, address, kGrant, deadline, {}};
    std::vector<uint64_t> checksums;
    for (const auto& page : distinct_) checksums.push_back(PageChecksum(page));
    for (uint32_t i = 0; i < count_; ++i) {
      pull.pages.push_back(
          {i, checksums[i % kDistinct], std::span(to_).subspan(i * bytes_, bytes_)});
    }
    return pull;
  }

 private:
  const uint32_t count_;
  const size_t bytes_;
  std::vector<std::vector<std::byte>> distinct_;
  std::vector<std::byte> to_;
};

}  // namespace pando::e2e

#endif  // PANDO_TESTS_E2E_TRANSFER_PAGES_H_
