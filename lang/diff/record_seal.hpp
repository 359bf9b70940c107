// Records of pullbacks that cannot be made by hand.
//
// The reverse half of a derivative believes its record: how often loops ran is the number of rows that it reads of a
// tape, and a flag says which values were made. A program can take a record out of a pullback, put together another one
// of the same type, or use one twice. So the forward half computes a seal of what the reverse half believes, by a key
// that no program knows, and the reverse half compares.
//
//   record_seal(code, parts…) → Int64
//   record_check(seal, code, parts…) → Int64, the seal; raises when it is not of these parts
//
// Of a part counts its type; the bits of integers and flags; which tape it is and when it was opened (one that was
// closed since is another). `code` differs for each derivative. Neither is a name of Core.
#pragma once

#include "lang/runtime/runtime.hpp"

namespace slope::diff {

extern const NativeInfo record_seal_native;
extern const NativeInfo record_check_native;

}  // namespace slope::diff
