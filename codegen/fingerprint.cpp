#include "codegen/loader.hpp"
#include "codegen/shared_source_hash.hpp"

namespace slope {

std::uint64_t codegen_fingerprint() { return shared_source_hash; }

}  // namespace slope
