/* Public evaluation of images: see acflow.h; the work is in infer/image_evaluate.h. */
#include "api/argument_checks.h"
#include "infer/image_evaluate.h"
#include "infer/image_match.h"

acf_status acf_images_split(const acf_images *im, double share, uint64_t seed, acf_images **learn,
                            acf_images **evaluate) {
    ACF_NEED(im);
    ACF_NEED(learn);
    ACF_NEED(evaluate);
    if (!(share > 0 && share < 1))
        return acf_fail(ACF_EUSAGE, "the share of images to evaluate is %g; expected more than 0 and less than 1",
                        share);
    acf_row_split split;
    acf_images *a = NULL, *b = NULL;
    const int64_t once = im->N / im->copies;
    ACF_TRY(acf_row_split_make(once, 0, share, seed, &split));
    if (split.test.n < 1 || split.train.n < 1)
        return acf_fail(ACF_EDATA,
                        "%lld image%s cannot be split with a share of %g; expected at least one image in each part",
                        (long long)once, once == 1 ? "" : "s", share);
    acf_status status = acf_images_pick(im, &split.train, &a);
    if (!status) status = acf_images_pick(im, &split.test, &b);
    if (status)
        acf_images_free(a);
    else
        *learn = a, *evaluate = b;
    return status;
}

/* Reads the options of an evaluation and opens the CPU with their threads. */
static acf_status open_job(const acf_options *o, acf_image_job *job) {
    job->how = acf_eval_settings_read(o);
    return acf_device_open_cpu((int)acf_options_int(o, "threads"), &job->cpu);
}

acf_status acf_image_eval_run(const acf_images *im, const acf_model *m, const char *masks, const acf_images *learned,
                              const acf_options *o, acf_image_evaluation **out) {
    ACF_NEED(im);
    ACF_NEED(m);
    ACF_NEED(o);
    ACF_NEED(out);
    if (!m->image) return acf_fail(ACF_EUSAGE, "the model is a model of a table; expected a model of images");
    if (learned && (learned->H != im->H || learned->W != im->W || learned->C != im->C || learned->bits != im->bits))
        return acf_fail(ACF_ESHAPE,
                        "acf_image_eval_run: the training images have another size than the images to evaluate");
    acf_image_job job = {
        .im = im, .model = m, .masks = masks ? masks : acf_options_text(m->config, "image-masks"), .seen = learned};
    ACF_TRY(open_job(o, &job));
    acf_status status = acf_image_evaluate(&job, out);
    acf_device_close(job.cpu);
    return status;
}

acf_status acf_image_eval_completed(const acf_images *truth, const char *completed, const char *masks,
                                    const acf_options *o, acf_image_evaluation **out) {
    ACF_NEED(truth);
    ACF_NEED(completed);
    ACF_NEED(o);
    ACF_NEED(out);
    acf_image_matches found;
    acf_image_job job = {.im = truth, .masks = masks};
    ACF_TRY(open_job(o, &job));
    acf_status status = acf_image_match(job.cpu, completed, truth, acf_options_bool(o, "strict"), &found);
    if (!status) {
        job.set = found.set, job.sets = found.sets;
        status = acf_image_evaluate(&job, out);
        acf_image_matches_free(&found);
    }
    acf_device_close(job.cpu);
    return status;
}

acf_status acf_image_eval_features(const char *real, const char *const *completed, int n, const acf_options *o,
                                   acf_image_evaluation **out) {
    ACF_NEED(real);
    ACF_NEED(completed);
    ACF_NEED(o);
    ACF_NEED(out);
    if (n < 1) return acf_fail(ACF_EUSAGE, "acf_image_eval_features: %d sets of completions; expected 1 or more", n);
    for (int k = 0; k < n; k++) ACF_NEED(completed[k]);
    acf_image_job job = {0};
    ACF_TRY(open_job(o, &job));
    acf_status status = acf_image_evaluate_features(job.cpu, real, completed, n, job.how.seed, out);
    acf_device_close(job.cpu);
    return status;
}

void acf_image_eval_free(acf_image_evaluation *e) { acf_release(e); }

acf_status acf_image_eval_report(const acf_image_evaluation *e, acf_format format, char *out, size_t cap,
                                 size_t *needed) {
    ACF_NEED(e);
    ACF_NEED_BUFFER(out, cap);
    if (format == ACF_TEXT) {
        acf_text t = acf_text_into(out, cap);
        acf_image_evaluation_text(e, &t);
        return acf_text_done(&t, needed);
    }
    json_t *j;
    ACF_TRY(acf_image_evaluation_json(e, &j));
    return acf_json_deliver(j, out, cap, needed);
}
