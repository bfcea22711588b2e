// An account in tokens, for programs and for people. Stateless; any thread.
#ifndef PANDO_CLIENT_CTL_ACCOUNT_VIEW_H_
#define PANDO_CLIENT_CTL_ACCOUNT_VIEW_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "client/ctl/table.h"
#include "pando/v1/admin.pb.h"

namespace pando::ctl {

uint64_t HitsOf(const v1::Account& account);
// Adds each number of `more` to that of `sum`.
void AddTo(const v1::Account& more, v1::Account* sum);

// Counts alone: a ratio is made by the reader.
nlohmann::json AccountJson(const v1::Account& account);
// A table of accounts, whose first columns have these names; and a row of it. The share of hits
// stands beside its two parts.
Table AccountTable(std::vector<std::string> first);
void AccountRow(std::vector<std::string> first, const v1::Account& account, Table* table);
extern const char* const kAccountLegend;

// Empty, or that prompt is not the sum of the hits and computed.
std::string AccountProblem(const std::string& whose, const v1::Account& account);

}  // namespace pando::ctl

#endif  // PANDO_CLIENT_CTL_ACCOUNT_VIEW_H_
