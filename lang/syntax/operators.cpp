#include "lang/syntax/operators.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "lang/syntax/syntactic_operators.hpp"

namespace slope::syntax {

namespace {

using P = Precedence;

// Ids are positions. The first rows are named in the header. ASCII rows that begin alike stand longest first within
// the buckets that match_ascii_operator builds, whatever their order here.
constexpr OperatorInfo ascii_operators[] = {
    {"+", P::plus, true, true, true},
    {"-", P::plus, true, true, true},
    {"*", P::times, false, true, true},
    {"!", P::none, true, false},
    {":", P::colon, false, true, true},
    {"=", P::assignment},
    {"?", P::conditional},
    {"=>", P::pair},
    {"||", P::lazy_or},
    {"&&", P::lazy_and},
    {"<:", P::comparison, true},
    {">:", P::comparison, true},
    {"in", P::comparison},
    {"isa", P::comparison},
    {"~", P::assignment, true},
    {"&", P::times, false, true, true},
    {"∈", P::comparison},
    {"-->", P::arrow},
    {"<", P::comparison},
    {">", P::comparison},
    {"<=", P::comparison},
    {">=", P::comparison},
    {"==", P::comparison},
    {"===", P::comparison},
    {"!=", P::comparison},
    {"!==", P::comparison},
    {"<|", P::pipe_left},
    {"|>", P::pipe_right},
    {"..", P::colon},
    {"|", P::plus, false, true, true},
    {"++", P::plus},
    {"/", P::times, false, true, true},
    {"%", P::times, false, true, true},
    {"\\", P::times, false, true, true},
    {"//", P::rational, false, true, true},
    {"<<", P::shift, false, true, true},
    {">>", P::shift, false, true, true},
    {">>>", P::shift, false, true, true},
    {"^", P::power, false, true, true},
    {"$", P::plus},
};
constexpr std::size_t ascii_count = std::size(ascii_operators);

struct UnicodeGroup {
  std::u32string_view characters;
  OperatorInfo info;  // without spelling
};

constexpr UnicodeGroup unicode_groups[] = {
    {U"÷⊻", {{}, P::none, false, true, true}},  // precedence set below
    {U"←→↔↚↛↞↠↢↣↦↤↮⇎⇍⇏⇐⇒⇔⇴⇶⇷⇸⇹⇺⇻⇼⇽⇾⇿⟵⟶⟷⟹⟺⟻⟼⟽⟾⟿⤀⤁⤂⤃⤄⤅⤆⤇⤌⤍⤎⤏⤐⤑⤔⤕⤖⤗⤘⤝⤞⤟⤠⥄⥅⥆⥇⥈⥊⥋⥎⥐⥒⥓⥖⥗⥚⥛⥞⥟⥢⥤⥦⥧⥨⥩⥪⥫⥬⥭⥰⧴⬱⬰⬲⬳⬴⬵⬶⬷⬸⬹⬺⬻⬼⬽⬾⬿⭀⭁⭂⭃⭄"
     U"⭇⭈⭉⭊⭋⭌￩￫⇜⇝↜↝↩↪↫↬↼↽⇀⇁⇄⇆⇇⇉⇋⇌⇚⇛⇠⇢",
     {{}, P::arrow}},
    {U"≡≠≢≤≥∉∋∌⊆⊈⊂⊄⊊∝∊∍∥∦∷∺∻∽∾≁≃≂≄≅≆≇≈≉≊≋≌≍≎≐≑≒≓≖≗≘≙≚≛≜≝≞≟≣≦≧≨≩≪≫≬≭≮≯≰≱≲≳≴≵≶≷≸≹≺≻≼≽≾≿⊀⊁⊃⊅⊇⊉⊋⊏⊐⊑⊒⊜⊩⊬⊮⊰⊱⊲⊳⊴⊵⊶⊷⋍⋐⋑⋕⋖⋗⋘⋙⋚⋛⋜"
     U"⋝⋞⋟⋠⋡⋢⋣⋤⋥⋦⋧⋨⋩⋪⋫⋬⋭⋲⋳⋴⋵⋶⋷⋸⋹⋺⋻⋼⋽⋾⋿⟈⟉⟒⦷⧀⧁⧡⧣⧤⧥⩦⩧⩪⩫⩬⩭⩮⩯⩰⩱⩲⩳⩵⩶⩷⩸⩹⩺⩻⩼⩽⩾⩿⪀⪁⪂⪃⪄⪅⪆⪇⪈⪉⪊⪋⪌⪍⪎⪏⪐⪑⪒⪓⪔⪕⪖⪗⪘⪙⪚⪛⪜⪝⪞⪟⪠⪡⪢⪣⪤⪥⪦⪧⪨⪩⪪⪫⪬⪭⪮⪯"
     U"⪰⪱⪲⪳⪴⪵⪶⪷⪸⪹⪺⪻⪼⪽⪾⪿⫀⫁⫂⫃⫄⫅⫆⫇⫈⫉⫊⫋⫌⫍⫎⫏⫐⫑⫒⫓⫔⫕⫖⫗⫘⫙⫷⫸⫹⫺⊢⊣⟂⫪⫫",
     {{}, P::comparison}},
    {U"…⁝⋮⋱⋰⋯", {{}, P::colon}},
    {U"⊕⊖⊞⊟∪∨⊔∓∔∸≏⊎⊽⋎⋓⟇⧺⧻⨈⨢⨣⨤⨥⨦⨧⨨⨩⨪⨫⨬⨭⨮⨹⨺⩁⩂⩅⩊⩌⩏⩐⩒⩔⩖⩗⩛⩝⩡⩢⩣¦", {{}, P::plus}},
    {U"±", {{}, P::plus, true}},
    {U"⋅∘×∩∧⊗⊘⊙⊚⊛⊠⊡⊓∗∙∤⅋≀⊼⋄⋆⋇⋉⋊⋋⋌⋏⋒⟑⦸⦼⦾⦿⧶⧷⨇⨰⨱⨲⨳⨴⨵⨶⨷⨸⨻⨼⨽⩀⩃⩄⩋⩍⩎⩑⩓⩕⩘⩚⩜⩞⩟⩠⫛⊍▷⨝⟕⟖⟗⌿⨟", {{}, P::times}},
    {U"↑↓⇵⟰⟱⤈⤉⤊⤋⤒⤓⥉⥌⥍⥏⥑⥔⥕⥘⥙⥜⥝⥠⥡⥣⥥⥮⥯￪￬", {{}, P::power}},
    {U"√∛∜¬", {{}, P::none, true, false}},
    {U"≔⩴≕", {{}, P::assignment}},
};

struct Table {
  std::vector<OperatorInfo> rows;
  std::vector<std::pair<char32_t, OperatorId>> by_code_point;  // sorted
  std::array<std::vector<OperatorId>, 128> by_first_byte;      // longest first
  std::vector<std::array<char, 4>> spellings;                  // what the unicode rows' spellings view

  Table() {
    rows.assign(std::begin(ascii_operators), std::end(ascii_operators));
    by_code_point.emplace_back(U'∈', op_element_of);
    std::size_t count = 0;
    for (const UnicodeGroup& group : unicode_groups) count += group.characters.size();
    spellings.reserve(count);
    for (const UnicodeGroup& group : unicode_groups) {
      for (const char32_t c : group.characters) {
        OperatorInfo info = group.info;
        if (c == U'÷') info.precedence = P::times;
        if (c == U'⊻') info.precedence = P::plus;
        if (c == U'⋆') info.unary = true;
        if (c == U'∓') info.unary = true;
        auto& bytes = spellings.emplace_back();
        const auto length =
            utf8proc_encode_char(static_cast<utf8proc_int32_t>(c), reinterpret_cast<utf8proc_uint8_t*>(bytes.data()));
        info.spelling = std::string_view(bytes.data(), static_cast<std::size_t>(length));
        by_code_point.emplace_back(c, static_cast<OperatorId>(rows.size()));
        rows.push_back(info);
      }
    }
    // Two signs that keyboards give for others: the middle dot is ⋅, the minus sign is -.
    const auto dot =
        std::find_if(by_code_point.begin(), by_code_point.end(), [](auto& row) { return row.first == U'⋅'; });
    by_code_point.emplace_back(U'\u00b7', OperatorId{dot->second});
    by_code_point.emplace_back(U'\u2212', op_minus);
    std::sort(by_code_point.begin(), by_code_point.end());
    for (OperatorId id = 0; id < ascii_count; ++id) {
      const char first = rows[id].spelling[0];
      if (id == op_in || id == op_isa || id == op_element_of) continue;
      by_first_byte[static_cast<unsigned char>(first)].push_back(id);
    }
    for (auto& bucket : by_first_byte) {
      std::sort(bucket.begin(), bucket.end(),
                [this](OperatorId a, OperatorId b) { return rows[a].spelling.size() > rows[b].spelling.size(); });
    }
  }
};

const Table& table() {
  static const Table made;
  return made;
}

}  // namespace

const OperatorInfo& operator_info(OperatorId id) { return table().rows[id]; }

std::optional<OperatorId> find_unicode_operator(char32_t code_point) {
  const auto& sorted = table().by_code_point;
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), std::pair(code_point, OperatorId{0}));
  if (at == sorted.end() || at->first != code_point) return std::nullopt;
  return at->second;
}

OperatorMatch match_ascii_operator(std::string_view text) {
  if (text.empty() || static_cast<unsigned char>(text[0]) >= 128) return {};
  for (const OperatorId id : table().by_first_byte[static_cast<unsigned char>(text[0])]) {
    const std::string_view spelling = table().rows[id].spelling;
    if (text.substr(0, spelling.size()) == spelling) return {id, static_cast<std::uint32_t>(spelling.size())};
  }
  return {};
}

std::optional<OperatorId> find_operator(std::string_view spelling) {
  if (spelling.empty()) return std::nullopt;
  if (spelling == operator_info(op_in).spelling) return op_in;
  if (spelling == operator_info(op_isa).spelling) return op_isa;
  const auto decode = [](std::string_view text, utf8proc_int32_t& code_point) {
    const auto length = utf8proc_iterate(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                                         static_cast<utf8proc_ssize_t>(text.size()), &code_point);
    return length <= 0 || code_point < 0 ? std::size_t{0} : static_cast<std::size_t>(length);
  };
  std::optional<OperatorId> found;
  std::size_t length = 0;
  utf8proc_int32_t code_point = -1;
  if (static_cast<unsigned char>(spelling[0]) < 128) {
    const OperatorMatch match = match_ascii_operator(spelling);
    length = match.length;
    if (length > 0) found = match.id;
  } else {
    length = decode(spelling, code_point);
    if (length > 0) found = find_unicode_operator(static_cast<char32_t>(code_point));
  }
  if (!found || length == spelling.size()) return found;
  if (!takes_suffix(*found)) return std::nullopt;
  while (length < spelling.size()) {
    const std::size_t more = decode(spelling.substr(length), code_point);
    if (more == 0 || !is_operator_suffix(static_cast<char32_t>(code_point))) return std::nullopt;
    length += more;
  }
  return found;
}

bool is_operator_suffix(char32_t c) {
  return c == 0xb2 || c == 0xb3 || c == 0xb9 || c == 0x2b0 || c == 0x2b2 || c == 0x2b3 || c == 0x2b7 || c == 0x2b8 ||
         (c >= 0x2e1 && c <= 0x2e3) || (c >= 0x1d9c && c <= 0x1dbf) || c == 0x2c7d || (c >= 0x2032 && c <= 0x2037) ||
         c == 0x2057 || (c >= 0x2070 && c <= 0x209c) || (c >= 0x1d2c && c <= 0x1d6a) || c == 0x2c7c;
}

// Not the words, nor `!`, `:` and `..`.
bool takes_suffix(OperatorId id) {
  return id != op_not && id != op_colon && id != op_in && id != op_isa &&
         operator_info(id).precedence != Precedence::none && operator_info(id).spelling != "..";
}

bool is_syntactic_operator(std::string_view spelling) {
  return spelling == "-->" || spelling == "≔" || spelling == "⩴" || spelling == "≕";
}

bool is_right_associative(Precedence precedence) {
  switch (precedence) {
    case Precedence::assignment:
    case Precedence::pair:
    case Precedence::conditional:
    case Precedence::arrow:
    case Precedence::lazy_or:
    case Precedence::lazy_and:
    case Precedence::pipe_left:
    case Precedence::power:
      return true;
    default:
      return false;
  }
}

}  // namespace slope::syntax
