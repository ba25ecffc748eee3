/* Every column kind, one line each. Adding a kind edits only this list (docs/adding-a-column-kind.md). Included
 * several times with different definitions of ACF_KIND, so it has no include guard. Messages name the kinds in this
 * order. */
ACF_KIND(real)
ACF_KIND(integer)
ACF_KIND(ordinal)
ACF_KIND(category)
ACF_KIND(date)
ACF_KIND(time)
ACF_KIND(identifier)
ACF_KIND(constant)
ACF_KIND(empty)
