/* Every column kind, one line each: the only place that is edited when one is added (docs/adding-a-column-kind.md).
 * Included several times with different meanings of ACF_KIND, so it has no include guard. Sentences name the kinds
 * in this order. */
ACF_KIND(real)
ACF_KIND(integer)
ACF_KIND(ordinal)
ACF_KIND(category)
ACF_KIND(date)
ACF_KIND(time)
ACF_KIND(identifier)
ACF_KIND(constant)
ACF_KIND(empty)
