// Attaching, well and badly.
#include <array>
#include <string>

#include "node/core/limits.h"
#include "tests/fuzz/engines.h"

namespace pando::fuzz {
namespace {

struct Shape {
  uint32_t block_tokens, world_size;
  uint64_t page_bytes;
};
// Few, so that engines meet in them.
constexpr std::array<Shape, 6> kShapes = {
    {{2, 1, 4096}, {1, 1, 1}, {3, 2, 65'536}, {2, 3, 4096}, {16, 1, 8 << 20}, {2, 2, 8 << 20}}};
constexpr uint32_t kReplicas = 4;

// What is wrong with an attach, by `odd`.
enum Odd : uint8_t {
  kOtherVersion = 2,
  kOtherFormula,
  kNoKey,
  kLongKey,
  kCredential,
  kNoPidfd,
  kNoWorld,
  kWideBoth,
  kShardTooHigh,
  kLargeBlock,
  kLargePage,
  kManyFields,
  kNamelessField,
  kLongField,
  kFieldTwice,
  kOtherField,
  kMoreFields,
  kNoBlock,
  kNoPage,
  kOtherPage,
};

void AddFields(uint8_t odd, uint8_t more, AttachRequest* attach) {
  attach->fields = {{"model", more % 2 == 0 ? "m" : "n"}, {"dtype", "bf16"}};
  if (odd == kNamelessField) attach->fields.emplace_back("", "");
  if (odd == kLongField) attach->fields.emplace_back("long", std::string(5'000, 'x'));
  if (odd == kFieldTwice) attach->fields.emplace_back("dtype", "bf16");
  if (odd == kOtherField) attach->fields.back().second = "fp8";
  if (odd == kMoreFields) attach->fields.emplace_back("lora", std::to_string(more % 2));
  if (odd != kManyFields) return;
  for (uint32_t i = 0; i <= limits::kFieldsPerSpace - more % 4; ++i) {
    attach->fields.emplace_back(std::to_string(i), "");
  }
}

void Bend(uint8_t odd, AttachRequest* attach) {
  if (odd == kOtherVersion) attach->protocol_min = attach->protocol_max = 7;
  if (odd == kOtherFormula) attach->checksum_formula = 9;
  if (odd == kNoKey) attach->replica_key.clear();
  if (odd == kLongKey) attach->replica_key.resize(limits::kReplicaKeyBytes + 1, 'k');
  if (odd == kCredential) attach->credential = "c";
  if (odd == kNoPidfd) attach->has_pidfd = false;
  if (odd == kNoWorld) attach->world_size = 0;
  if (odd == kWideBoth) attach->role = Role::kBoth;
  if (odd == kShardTooHigh) attach->shard = ShardId(attach->world_size);
  if (odd == kLargeBlock) attach->block_tokens = limits::kBlockTokens + 1;
  if (odd == kLargePage) attach->page_bytes = Bytes(limits::kPageBytes + 1);
  if (odd == kNoBlock) attach->block_tokens = 0;
  if (odd == kNoPage) attach->page_bytes = Bytes();
  if (odd == kOtherPage) attach->page_bytes = Bytes(123);
}

}  // namespace

// request: the replica. prompt: its shape. from: the role. to: the shard. form: from 128 on, the
// slot of the session that it replaces. time: how fast it computes. more: model and process.
void Engines::Attach(const Operation& operation) {
  const Shape& shape = kShapes[operation.prompt % kShapes.size()];
  AttachRequest attach;
  attach.checksum_formula = limits::kChecksumFormula;
  attach.replica_key = "engine-" + std::to_string(operation.request % kReplicas);
  attach.world_size = shape.world_size;
  attach.role = shape.world_size == 1     ? Role::kBoth
                : operation.from % 2 == 0 ? Role::kScheduler
                                          : Role::kWorker;
  attach.shard = ShardId(attach.role == Role::kWorker ? operation.to % shape.world_size : 0);
  attach.block_tokens = shape.block_tokens;
  attach.page_bytes = Bytes(shape.page_bytes);
  attach.prefill_tokens_per_s = operation.time;
  attach.has_pidfd = true;
  attach.process = operation.more / 64;
  if (operation.form >= 128) attach.replaces = slots_[operation.form % slots_.size()].id;
  AddFields(operation.odd, operation.more, &attach);
  Bend(operation.odd, &attach);
  Slot& slot = SlotOf(operation);
  const auto answer = Send(operation, attach);
  watch_->Expect(answer.has_value(), "an attach was not answered");
  if (answer && std::holds_alternative<AttachAnswer>(answer->body)) Attached(&slot, attach);
}

void Engines::Attached(Slot* slot, const AttachRequest& attach) {
  for (Slot& other : slots_) {
    const bool same_place = other.attached && !other.displaced &&
                            other.replica == attach.replica_key && other.role == attach.role &&
                            other.shard == attach.shard.value();
    if (!same_place) continue;
    other.displaced = true;
    LetGo(other.id);
  }
  slot->attached = true;
  slot->replica = attach.replica_key;
  slot->role = attach.role;
  slot->shard = attach.shard.value();
  auto [known, added] = replicas_.try_emplace(attach.replica_key);
  SpaceDescription& shape = known->second;
  if (added) shape.shards = attach.world_size;
  if (attach.block_tokens != 0) shape.block_tokens = attach.block_tokens;
  if (attach.page_bytes != Bytes()) shape.page_bytes = attach.page_bytes;
  shape.fields.insert(attach.fields.begin(), attach.fields.end());
}

}  // namespace pando::fuzz
