/* Every operation must be tested. After all suites, every operation of the list that has a derivative must have run in
 * a case, and in the double build its gradients must have been checked. */
#include "harness/lab.h"

#include <string.h>

static void every_operation_has_a_case(void **state) {
    (void)state;
    const bool *seen = sizeof(acf_real) == 8 ? acf_lab_checked : acf_lab_ran;
    bool any = false;
    int missing = 0;
    for (int i = 0; i < ACF_OP_COUNT; i++) any |= acf_lab_ran[i];
    if (!any) acf_skip("coverage is for a run of all suites");
    for (int i = 0; i < ACF_OP_COUNT; i++) {
        if (!acf_ops[i]->cpu.backward || seen[i]) continue;
        print_error("operation '%s' has a derivative that no case checks\n", acf_ops[i]->name);
        missing++;
    }
    assert_int_equal(missing, 0);
}

static void the_list_is_in_order(void **state) {
    (void)state;
    for (int i = 0; i < ACF_OP_COUNT; i++) {
        assert_int_equal(acf_ops[i]->id, i);
        for (int j = 0; j < i; j++) assert_string_not_equal(acf_ops[i]->name, acf_ops[j]->name);
    }
}

/* The name sorts after all others, so that this suite runs last. */
__attribute__((constructor)) static void add(void) {
    static const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation_has_a_case),
                                              cmocka_unit_test(the_list_is_in_order)};
    acf_suite_add("~coverage", tests, 2);
}
