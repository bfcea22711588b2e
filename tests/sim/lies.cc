#include "tests/sim/lies.h"

#include <memory>
#include <utility>
#include <vector>

namespace pando::sim {
namespace {

void LieOf(HelloAnswer* hello, Random* random) {
  switch (random->Below(4)) {
    case 0:
      hello->hello.protocol_min = hello->hello.protocol_max = 9;
      break;
    case 1:
      ++hello->hello.hash_formula;
      break;
    case 2:
      hello->hello.boot = BootId(random->Next() | 1);
      break;
    default:
      hello->code = static_cast<PeerCode>(random->Below(6));
  }
}

void LieOf(GrantAnswer* grant, Random* random) {
  switch (random->Below(8)) {
    case 0:
      grant->code = static_cast<PeerCode>(random->Below(6));
      break;
    case 1:
      grant->from += 1;
      break;
    case 2:
      grant->to += random->OneIn(2) ? 1 : -1;
      break;
    case 3:
      grant->page_bytes = Bytes(grant->page_bytes.value() + 1);
      break;
    case 4:
      for (uint64_t& checksum : grant->checksums) checksum = random->Next();
      break;
    case 5:  // those of other pages
      if (grant->checksums.size() > 1) {
        std::swap(grant->checksums.front(), grant->checksums.back());
      }
      break;
    case 6:
      grant->generations.resize(random->Below(4));
      break;
    default:
      grant->grant = {random->Next(), random->Next()};
  }
}

void LieOf(DoneAnswer* done, Random* random) {
  done->unknown = static_cast<uint32_t>(random->Next());
}

void LieOf(GoodbyeAnswer*, Random*) {}

}  // namespace

void Lie(PeerAnswerBody* answer, Random* random) {
  std::visit([random](auto& body) { LieOf(&body, random); }, *answer);
}

void Lie(SendFeed* feed, Random* random) {
  auto piece = std::make_shared<FeedPiece>(*feed->piece);
  switch (random->Below(6)) {
    case 0:
      piece->adds.push_back(random->Next());
      break;
    case 1:
      piece->removes.push_back(random->Next());
      break;
    case 2:
      ++piece->sequence;
      break;
    case 3:  // (A delta that poses as a snapshot's first part is believed for 1,024 deltas.)
      piece->part += piece->part > 0 ? 1 : 0;
      break;
    case 4:
      piece->boot = BootId(random->Next() | 1);
      break;
    default:
      piece->held.digest ^= 1;
  }
  feed->piece = std::move(piece);
}

}  // namespace pando::sim
