/* What a question asks for, cell by cell. */
#ifndef ACF_INFER_QUESTION_H
#define ACF_INFER_QUESTION_H

#include "data/frame.h"
#include "infer/session.h"

/* SCORE: what is present is asked for; FILL: what is missing, where the question does not say. */
typedef enum acf_purpose { ACF_TO_SCORE, ACF_TO_FILL } acf_purpose;
bool acf_question_asks(acf_question q, acf_purpose why, int64_t cell, bool present);
bool acf_question_gives(acf_question q, acf_purpose why, int64_t cell, bool present);

/* Rows of a blank table are new ones, each of them a draw for itself. Rows of any other are one table, of which a draw is one completed version. */
static inline bool acf_rows_apart(const acf_table *t) { return t->frame && t->frame->given; }

#endif
