/* The role of a pixel in a query to an image model. Arrays of roles are (N,H,W), a byte each. Without absent pixels
 * they are masks: not 0 where a pixel is given. */
#ifndef ACF_BASE_PIXEL_H
#define ACF_BASE_PIXEL_H

enum {
    ACF_PIXEL_ASKED = 0,
    ACF_PIXEL_GIVEN = 1,
    ACF_PIXEL_ABSENT = 2 /* ignored */
};

#endif
