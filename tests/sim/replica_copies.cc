// The workers' half of a simulated replica: begin, touch pages, end.
#include <algorithm>
#include <utility>

#include "tests/sim/replica.h"

namespace pando::sim {

void Replica::Run(const JobRef& job) {
  if (recent_.size() >= 8) recent_.erase(recent_.begin());
  recent_.push_back(job->claim);
  if (Chance(&job->random, Fault::kForget, 12)) return;
  job->parts_left = options_.shards;
  for (uint32_t shard = 0; shard < options_.shards; ++shard) RunPart(job, shard);
}

void Replica::RunPart(const JobRef& job, uint32_t shard) {
  const size_t index = WorkerIndex(shard);
  world_.events->After(
      job->random.Below(100), [this, job, shard, index, life = processes_[index].life] {
        const Process& process = processes_[index];
        if (!process.attached || process.life != life) return;
        const SessionId session = process.session;
        world_.node->Send(session, BeginRequest{{job->claim}}, 0,
                          [this, job, shard, index, session](const Answer& answer) {
                            const auto* begun = std::get_if<BeginAnswer>(&answer.body);
                            if (begun == nullptr || begun->items[0].code != Code::kOk) {
                              return PartDone(job, false);
                            }
                            // The dead touch nothing.
                            const Process& touching = processes_[index];
                            if (touching.alive && touching.session == session)
                              Touch(job, begun->items[0], shard);
                          });
      });
}

Stamp Replica::Expected(const Job& job, uint32_t block, uint32_t shard) const {
  world_.checker->Expect(block < job.prompt.blocks(), "a page behind the prompt's last full block");
  if (block >= job.prompt.blocks()) return {};
  return {options_.geometry, job.prompt.prefixes[block], shard};
}

void Replica::Touch(const JobRef& job, const BeginItem& item, uint32_t shard) {
  Process& process = processes_[WorkerIndex(shard)];
  world_.checker->Expect(item.store == job->store, "a load became a store");
  const Copy copy{world_.node->memory(), world_.node->memory()->Enter(item.pages)};
  const uint64_t number = ++last_copy_;
  process.copies[number] = copy;
  if (item.store) {
    Write(job, item, shard, copy, /*all=*/false);
  } else {
    Read(job, item, shard, copy);
  }
  // Mostly soon; sometimes stopped for longer than any claim stands.
  Random* random = &job->random;
  const uint64_t takes =
      Chance(random, Fault::kHang, 80) ? random->Below(60'000) : random->Below(400);
  world_.events->After(takes, [this, job, item, shard, number, life = process.life] {
    Finish(job, item, shard, number, life);
  });
}

// Pages that are not what they should be; now and then a good one is called bad.
EndItem Replica::Read(const JobRef& job, const BeginItem& item, uint32_t shard, const Copy& copy) {
  EndItem end;
  end.claim = item.claim;
  for (uint32_t i = 0; i < item.pages.size(); ++i) {
    const Stamp expected = Expected(*job, item.first_block + i, shard);
    world_.checker->Expect(copy.memory->Read(copy.accessor, item.pages[i]) == expected,
                           "a wrong page was loaded");
    world_.checker->Expect(item.checksums[i] == Checksum(expected), "a wrong checksum came");
  }
  if (Chance(&job->random, Fault::kBad, 30)) {
    end.bad_pages.push_back(static_cast<uint32_t>(job->random.Below(item.pages.size())));
  }
  return end;
}

EndItem Replica::Write(const JobRef& job, const BeginItem& item, uint32_t shard, const Copy& copy,
                       bool all) {
  EndItem end;
  end.claim = item.claim;
  const auto pages = static_cast<uint32_t>(item.pages.size());
  // At first only some of them; a bad one is left with rubbish in it.
  const auto count = all ? pages : static_cast<uint32_t>(job->random.Below(pages + 1));
  const uint32_t bad = Chance(&job->random, Fault::kBad, 12)
                           ? static_cast<uint32_t>(job->random.Below(pages))
                           : UINT32_MAX;
  for (uint32_t i = 0; i < count; ++i) {
    Stamp stamp = Expected(*job, item.first_block + i, shard);
    end.checksums.push_back(Checksum(stamp));
    if (i == bad) {
      stamp.prefix = job->random.Next();
      end.bad_pages.push_back(i);
    }
    copy.memory->Write(copy.accessor, item.pages[i], stamp);
  }
  end.failed = all && Chance(&job->random, Fault::kBad, 20);
  return end;
}

// The copy has ended. If the socket ended before, nobody is told, and the pages were still ours.
void Replica::Finish(const JobRef& job, const BeginItem& item, uint32_t shard, uint64_t number,
                     uint64_t life) {
  Process& process = processes_[WorkerIndex(shard)];
  const auto found = process.copies.find(number);
  if (process.life != life || found == process.copies.end()) return;
  const Copy copy = found->second;
  EndItem end =
      item.store ? Write(job, item, shard, copy, /*all=*/true) : Read(job, item, shard, copy);
  copy.memory->Leave(copy.accessor);
  process.copies.erase(number);
  if (!process.attached) return;
  const bool good = end.bad_pages.empty() && !end.failed;
  world_.node->Send(process.session, EndRequest{{std::move(end)}}, 0,
                    [this, job, good](const Answer& answer) {
                      const auto* ended = std::get_if<EndAnswer>(&answer.body);
                      PartDone(job, good && ended != nullptr && ended->codes[0] == Code::kOk);
                    });
}

void Replica::PartDone(const JobRef& job, bool ok) {
  job->all_ok &= ok;
  if (--job->parts_left == 0) job->done(job->all_ok);
}

}  // namespace pando::sim
